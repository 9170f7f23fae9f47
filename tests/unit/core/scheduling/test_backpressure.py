"""Paused partitions are resumed, also while little is in flight and back-pressure has nothing else to do."""

from dispatch_helpers import make_dispatch, records
from penstock.core.failures.outcome import DONE
from penstock.core.scheduling.backpressure import FULL_SECONDS

TP, OTHER = ("t", 0), ("t", 1)


def test_a_partition_is_resumed_long_after_the_member_had_room_again() -> None:
    dispatch = make_dispatch(max_in_flight=40)
    epoch, _ = dispatch.assign(TP, 0), dispatch.assign(OTHER, 0)
    dispatch.deliver(TP, records(TP, 0, 40))
    ((run,),) = dispatch.take(0.0, 30)
    dispatch.balance(0.0)
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert (pause.epoch, pause.rewind_to) == (epoch, 30)
    dispatch.rewound(TP)
    dispatch.report([(run, [DONE] * 16, False)], now=1.0)
    assert dispatch.balance(1.0) == ([], []), "14 are left, more than half of its share"
    dispatch.report([(run, [DONE] * 14, True)], now=2.0)
    assert dispatch.balance(2.0) == ([], [epoch])
    assert dispatch.balance(3.0) == ([], [])


def test_a_command_pauses_and_resumes_the_fetch_of_an_idle_partition() -> None:
    dispatch = make_dispatch()
    epoch = dispatch.assign(TP, 0)
    dispatch.commanded.pause()
    ((pause,), _) = dispatch.balance(0.0)
    assert (pause.epoch, pause.rewind_to) == (epoch, None)
    assert dispatch.balance(1.0) == ([], [])
    dispatch.commanded.resume()
    assert dispatch.balance(2.0) == ([], [epoch])
    assert dispatch.balance(3.0) == ([], [])
