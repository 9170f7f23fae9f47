"""When the dispatcher wakes up by itself: not for what is over, or it would run without a pause."""

from dispatch_helpers import DELAYED, FAILURE, make_dispatch, records, returned, take
from penstock import Breaker
from penstock.core.failures.outcome import DONE, Failed
from penstock.core.failures.pausing_circuit import PausingCircuit
from penstock.core.records.record import TopicPartition

SOURCE: TopicPartition = ("t", 0)
LATER: TopicPartition = ("t.retry.1m", 0)


def test_a_retry_topic_that_is_revoked_or_stopped_wakes_nobody_when_its_record_is_due() -> None:
    """Its epoch may take long to drain, because a handler of another record is slow."""
    dispatch = make_dispatch(retry_topics=[60.0])
    dispatch.assign(LATER, 0)
    dispatch.deliver_returned(LATER, returned(LATER, 0, [0.0, 5.0]), now=0.0)
    take(dispatch)
    dispatch.balance(0.0)
    assert dispatch.next_due() == 5.0
    dispatch.stop_dispatching([LATER])
    dispatch.balance(6.0)
    assert dispatch.next_due() is None


def test_the_linger_of_a_batch_wakes_nobody_while_no_worker_is_free() -> None:
    """The concurrency can be lowered while an incomplete batch waits, by a command or by concurrency="auto"."""
    dispatch = make_dispatch(batch=4, linger=1.0, concurrency=3)
    dispatch.assign(SOURCE, 0)
    dispatch.assign(LATER, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 4))
    (bundle,) = dispatch.take(0.0, 1)
    dispatch.deliver(LATER, records(LATER, 0, 1))
    assert dispatch.take(0.5, 1) == []
    assert dispatch.next_due() == 1.5
    dispatch.set_concurrency(1)
    assert dispatch.take(2.0, 1) == []
    assert dispatch.next_due() is None, "only a free worker can begin the batch"
    dispatch.report([(run, [DONE] * 4, True) for run in bundle], now=2.0)
    dispatch.release()
    assert len(dispatch.take(2.0, 1)) == 1


def test_the_linger_of_a_batch_that_a_breaker_has_tried_is_over() -> None:
    dispatch = make_dispatch(order="none", batch=2, linger=1.0, breaker=Breaker(then="pause", on=(OSError,)))
    dispatch.assign(SOURCE, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 1))
    assert dispatch.take(0.0, 1) == []
    circuit = dispatch._pausing
    assert isinstance(circuit, PausingCircuit)
    circuit._open("a record", 0.5, "OSError: away")
    ((run,),) = dispatch.take(circuit.probe_at, 1)
    dispatch.report([(run, [DONE], True)], now=circuit.probe_at)
    dispatch.release()
    circuit.worked(now := circuit.probe_at, now)
    assert dispatch.take(now, 1) == []
    assert dispatch.next_due() is None


def test_a_record_that_waits_in_memory_is_forgotten_with_its_partition() -> None:
    """It may wait for days, and the partition may move every hour."""
    dispatch = make_dispatch(order="none")
    dispatch.assign(SOURCE, 0)
    dispatch.assign(LATER, 0)
    dispatch.deliver(SOURCE, records(SOURCE, 0, 1))
    dispatch.deliver(LATER, records(LATER, 0, 1))
    outcomes: dict[TopicPartition, Failed] = {SOURCE: FAILURE}
    for run in take(dispatch):
        dispatch.report([(run, [outcomes.get(run.epoch.tp, DELAYED)], True)], now=0.0)
    assert dispatch.next_due() == 1.0
    dispatch.close([SOURCE])
    assert [(at, lane.epoch.tp) for at, lane in dispatch.backoffs()] == [(5.0, LATER)]
    assert dispatch.next_due() == 5.0
