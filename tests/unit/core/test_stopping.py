"""Records that still arrive for a partition that is being revoked do not count as read."""

from penstock import Record
from penstock.core.failures.outcome import DONE
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.in_flight import DEFAULT_BYTES, InFlight


def test_the_end_of_a_partition_that_stopped_dispatching_does_not_pass_what_was_dropped() -> None:
    # A poll that was in progress at a stop returns records and the end of the log behind them. The records are dropped,
    # so a commit of that end would lose them.
    tp = ("t", 0)
    dispatch = Dispatch(
        order="partition", concurrency=1, in_flight=InFlight(10, DEFAULT_BYTES), dead_letter_of=None, random=lambda: 0.5
    )
    dispatch.assign(tp, 0)
    dispatch.deliver(tp, [Record(*tp, 0, None, b"")])
    ((run,),) = dispatch.take(0.0, 1)
    dispatch.report([(run, [DONE], True)], 0.0)
    assert dispatch.commits() == {tp: (1, "")}
    dispatch.stop_dispatching([tp])
    dispatch.deliver(tp, [Record(*tp, offset, None, b"") for offset in (1, 2, 3)])
    dispatch.reach(tp, 4)
    assert dispatch.commits() == {tp: (1, "")}
