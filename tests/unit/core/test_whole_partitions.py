"""With keys and a quick handler a partition is one lane, as long as no key delays another."""

import pytest

from dispatch_helpers import BLOCKED, FAILURE, SLOW_FAILURE, keyed, make_dispatch, records, take
from penstock.app.attempts.work import Work
from penstock.core.failures.outcome import DONE, Failed
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling import schedule
from penstock.core.scheduling.bundle_size import NOT_QUICK, QUICK
from penstock.core.scheduling.lanes import LaneRun

TP: TopicPartition = ("t", 0)


def offsets(runs: list[LaneRun]) -> list[list[int]]:
    return [[record.offset for record in run.records] for run in runs]


def test_a_partition_is_whole_while_bundles_are_large_and_divided_once_they_are_small() -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a", b"b", b"a", None))
    (whole,) = take(dispatch, size=QUICK)
    assert offsets([whole]) == [[0, 1, 2, 3]]
    dispatch.deliver(TP, keyed(TP, b"c", b"b", b"c", first=4))
    assert take(dispatch, size=QUICK) == [], "one worker at a time has a whole partition"
    assert take(dispatch, size=1) == [], "it is divided only after the running records have ended"
    dispatch.report([(whole, [DONE] * 4, True)], now=0.0)
    assert offsets(take(dispatch, size=NOT_QUICK)) == [[4, 5, 6]], "between the limits it does not change"
    dispatch.deliver(TP, keyed(TP, b"c", b"d", first=7))
    dispatch.stop_dispatching([TP])
    dispatch.close([TP])
    dispatch.assign(TP, 7)
    dispatch.deliver(TP, keyed(TP, b"c", b"d", b"c", first=7))
    assert offsets(take(dispatch, size=NOT_QUICK - 1)) == [[7, 9], [8]]


def test_lanes_are_gathered_in_the_order_of_offsets_and_only_when_none_of_them_runs() -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    epoch = dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a"))
    (running,) = take(dispatch, size=1)
    dispatch.deliver(TP, keyed(TP, b"a", b"b", b"a", first=1))
    assert offsets(take(dispatch, size=QUICK)) == [[2]]
    assert not epoch.lanes.mixed
    dispatch.report([(running, [], True)], now=0.0)  # given back, undone
    dispatch.report([(LaneRun(epoch.lanes.by_key[b"b"], keyed(TP, b"b", first=2)), [DONE], True)], now=0.0)
    assert offsets(take(dispatch, size=QUICK)) == [[0, 1, 3]]
    assert epoch.lanes.mixed


@pytest.mark.parametrize("failure", [FAILURE, BLOCKED])
def test_a_retry_divides_the_partition_and_holds_its_own_key_only(failure: Failed) -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    epoch = dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a", b"b", b"c", b"b", b"c", None))
    (whole,) = take(dispatch, size=QUICK)
    dispatch.deliver(TP, keyed(TP, b"b", b"a", first=6))
    dispatch.report([(whole, [DONE, failure], True)], now=0.0)
    assert offsets(take(dispatch, size=QUICK)) == [[2, 4], [5], [7]]
    (retry,) = take(dispatch, 10.0, size=QUICK)
    assert offsets([retry]) == [[1, 3, 6]]
    assert not epoch.lanes.mixed


def test_a_failure_that_waits_in_a_retry_topic_holds_nothing_up_and_divides_nothing() -> None:
    dispatch = make_dispatch(order="key", retry_topics=[60.0])
    epoch = dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a", b"b", b"a"))
    (whole,) = take(dispatch, size=QUICK)
    dispatch.report([(whole, [SLOW_FAILURE], True)], now=0.0)
    assert offsets(take(dispatch, size=QUICK)) == [[1, 2]]
    assert epoch.lanes.mixed


@pytest.mark.parametrize("key", [b"a", None])
def test_a_record_without_a_key_is_tried_again_alone(key: bytes | None) -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, key, key, b"b"))
    (whole,) = take(dispatch, size=QUICK)
    dispatch.report([(whole, [FAILURE], True)], now=0.0)
    assert offsets(take(dispatch)) == ([[2]] if key else [[1], [2]])
    assert offsets(take(dispatch, 1.0)) == ([[0, 1]] if key else [[0]])


def stuck_at(run: LaneRun, count: int) -> Work:
    """A worker that has begun this many records of the run, and finished all but one."""
    work = Work([run], has_dead_letter=True, clock=lambda: 0.0)
    claims = work.records(next(work.runs()))
    for _ in range(count):
        next(claims)
    run.outcomes.extend([DONE] * (count - 1))
    return work


@pytest.mark.parametrize("keys", [(b"a", b"b", b"a", b"b", b"c"), (b"x", b"b")])
def test_a_stuck_record_blocks_its_key_and_no_other(keys: tuple[bytes, ...]) -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    epoch = dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, *keys))
    (run,) = take(dispatch, size=QUICK)
    work = stuck_at(run, 2)  # at the first of key b
    dispatch.deliver(TP, keyed(TP, b"b", b"d", first=len(keys)))
    dispatch.report([*work.collect(), *((back, (), True) for back in work.take_back())], now=0.0)
    assert work.take_back() == []
    others = take(dispatch, size=QUICK)
    assert all(record.key != b"b" for other in others for record in other.records)
    assert {record.offset for other in others for record in other.records} == {
        n for n, key in enumerate([*keys, b"b", b"d"]) if n > 1 and key != b"b"
    }
    assert not epoch.lanes.mixed
    run.outcomes.append(DONE)
    run.done = True
    dispatch.report(work.collect(), now=0.0)
    (rest,) = take(dispatch)
    assert all(record.key == b"b" for record in rest.records)
    assert [record.offset for record in rest.records] == [
        n for n, key in enumerate([*keys, b"b"]) if n > 1 and key == b"b"
    ]


def test_a_stuck_record_that_fails_is_retried_before_its_key_continues() -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a", b"b", b"a"))
    (run,) = take(dispatch, size=QUICK)
    work = stuck_at(run, 1)
    dispatch.report([(back, (), True) for back in work.take_back()], now=0.0)
    run.outcomes.append(FAILURE)
    run.done = True
    dispatch.report(work.collect(), now=0.0)
    assert offsets(take(dispatch)) == [[1]]
    assert offsets(take(dispatch, 1.0)) == [[0, 2]]


def test_after_a_stuck_record_keys_have_their_own_lanes_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_SPLIT_OFFSETS", 5)
    dispatch = make_dispatch(order="key", concurrency=10)
    epoch = dispatch.assign(TP, 0)
    dispatch.deliver(TP, records(TP, 0, 3))
    (run,) = take(dispatch, size=QUICK)
    dispatch.report([(run, [FAILURE], True)], now=0.0)
    for first, count, mixed in [(3, 3, False), (6, 1, False), (7, 1, True)]:
        dispatch.report([(each, [DONE] * len(each.records), True) for each in take(dispatch, 1.0, size=QUICK)], now=1.0)
        dispatch.deliver(TP, records(TP, first, count))
        runs = take(dispatch, 1.0, size=QUICK)
        assert epoch.lanes.mixed == mixed
        dispatch.report([(each, [DONE] * len(each.records), True) for each in runs], now=1.0)


def test_a_whole_partition_lane_drops_and_revokes_records_like_any_other() -> None:
    dispatch = make_dispatch(order="key", max_in_flight=8, concurrency=10)
    epoch, _ = dispatch.assign(TP, 0), dispatch.assign(("t", 1), 0)
    dispatch.deliver(TP, records(TP, 0, 2))
    (run,) = take(dispatch, size=QUICK)
    dispatch.deliver(TP, records(TP, 2, 6))
    dispatch.balance(0.0)
    ((pause,), _) = dispatch.balance(1.0)
    assert pause.rewind_to == 4
    dispatch.stop_dispatching([TP])
    work = stuck_at(run, 1)
    dispatch.report([(back, (), True) for back in work.take_back()], now=0.0)
    run.outcomes.append(FAILURE)
    run.done = True
    dispatch.report(work.collect(), now=0.0)
    assert epoch.drained
    assert not epoch.lanes.by_key
    assert take(dispatch, 1.0, size=QUICK) == []
