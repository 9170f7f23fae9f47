"""Records that are finished only when the user acknowledges them, and batches that wait until they are full."""

import pytest

from penstock import PenstockError, Record, Retry
from penstock.core.failures.outcome import DONE, HELD, Failed
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.in_flight import DEFAULT_BYTES, InFlight
from penstock.core.scheduling.lanes import Order

TP = ("t", 0)


def make(*, order: Order = "key", batch: int | None = None, linger: float = 0.0) -> Dispatch:
    return Dispatch(
        order=order,
        concurrency=4,
        in_flight=InFlight(100, DEFAULT_BYTES),
        dead_letter_of=None,
        random=lambda: 0.5,
        batch=batch,
        linger=linger,
    )


def records(first: int, count: int) -> list[Record]:
    return [Record(*TP, offset, b"key-%d" % (offset % 3), b"") for offset in range(first, first + count)]


def test_a_held_record_is_unfinished_until_it_is_acknowledged() -> None:
    dispatch = make(order="partition")
    epoch = dispatch.assign(TP, 0)
    batch = records(0, 3)
    dispatch.deliver(TP, batch)
    ((run,),) = dispatch.take(0.0, 10)
    dispatch.report([(run, [HELD, HELD, HELD], True)], now=0.0)
    assert dispatch.commits() == {}
    assert not epoch.drained
    ((_, finished),) = dispatch.ack(TP, 1, batch[1]).finished
    assert finished == [batch[1]]
    assert epoch.tracker.commit_point == 0
    dispatch.ack(TP, 0, batch[0])
    assert epoch.tracker.commit_point == 2
    assert not dispatch.ack(TP, 0, batch[0]).finished, "twice is fine"
    assert not epoch.pending.acked_early
    ((_, finished),) = dispatch.ack_below(TP, 3).finished
    assert finished == [batch[2]]
    assert dispatch.commits() == {TP: (3, "")}
    assert epoch.drained


def test_an_acknowledgement_that_comes_before_the_outcome_counts() -> None:
    dispatch = make(order="partition")
    dispatch.assign(TP, 0)
    batch = records(0, 1)
    dispatch.deliver(TP, batch)
    ((run,),) = dispatch.take(0.0, 10)
    assert not dispatch.ack(TP, 0, batch[0]).finished
    ((_, finished),) = dispatch.report([(run, [HELD], True)], now=0.0).finished
    assert finished == batch
    assert dispatch.commits() == {TP: (1, "")}


def test_an_acknowledgement_of_an_earlier_epoch_s_record_does_not_count() -> None:
    dispatch = make(order="partition")
    dispatch.assign(TP, 0)
    old = records(0, 1)
    dispatch.deliver(TP, old)
    ((run,),) = dispatch.take(0.0, 10)
    dispatch.report([(run, [HELD], True)], now=0.0)
    dispatch.close([TP])
    assert not dispatch.ack(TP, 0, old[0]).finished
    assert not dispatch.ack_below(TP, 9).finished
    dispatch.release()
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, records(0, 1))
    ((again,),) = dispatch.take(0.0, 10)
    dispatch.ack(TP, 0, old[0])
    dispatch.report([(again, [HELD], True)], now=0.0)
    assert dispatch.commits() == {}, "the acknowledgement belongs to another delivery"
    dispatch.ack(TP, 0, again.records[0])
    assert dispatch.commits() == {TP: (1, "")}


def test_a_record_is_acknowledged_only_where_that_was_asked_for() -> None:
    with pytest.raises(PenstockError, match="cannot be acknowledged"):
        records(0, 1)[0].ack()
    calls: list[int] = []
    records(0, 1)[0].acknowledged_by(lambda: calls.append(1)).ack()
    assert calls == [1]


def test_an_incomplete_batch_waits_for_more_and_a_full_one_does_not() -> None:
    dispatch = make(batch=4, linger=1.0)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, records(0, 3))
    assert dispatch.take(0.0, 1) == []
    assert dispatch.next_due() == 1.0
    assert dispatch.take(0.9, 1) == []
    dispatch.deliver(TP, records(3, 3))
    (full,) = dispatch.take(0.9, 1)
    assert sorted(record.offset for run in full for record in run.records) == [0, 1, 3, 4], "of two keys"
    assert dispatch.next_due() == 1.9, "the rest waits for its own linger"
    (rest,) = dispatch.take(2.0, 1)
    assert sorted(record.offset for run in rest for record in run.records) == [2, 5]


def test_a_record_that_fails_in_the_middle_of_a_batch_is_retried_before_its_lane_continues() -> None:
    dispatch = make(order="partition", batch=3)
    epoch = dispatch.assign(TP, 0)
    dispatch.deliver(TP, records(0, 5))
    ((run,),) = dispatch.take(0.0, 1)
    away = Failed("OSError", "away", retry=Retry(attempts=2, first="1s", jitter=0))
    dispatch.report([(run, [away, DONE, away], True)], now=0.0)
    dispatch.release()
    assert dispatch.take(0.5, 1) == []
    ((again,),) = dispatch.take(1.0, 1)
    assert [(r.offset, epoch.attempt_at(r.offset)) for r in again.records] == [(0, 2), (2, 2), (3, 1)]
    done = dispatch.report([(again, [DONE, DONE, DONE], True)], now=1.0)
    assert done.again == {(epoch, 0): 2, (epoch, 2): 2}
    assert epoch.tracker.commit_point == 4
    assert not epoch.failures
