"""The dispatcher's rules, in named cases."""

from dispatch_helpers import FAILURE, OUTPUT, POISON, keyed, make_dispatch, records, take
from penstock import Record
from penstock.core.failures.outcome import DONE, Outcome
from penstock.core.progress.offset_map import MAX_BYTES, decode
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.backpressure import FULL_SECONDS
from penstock.core.scheduling.epoch_parts import BITMAP_SPAN, MAX_RANGES
from penstock.core.scheduling.lanes import LaneRun

TPS: list[TopicPartition] = [("t", 0), ("t", 1)]


def test_a_retry_holds_its_own_lane_and_no_other() -> None:
    dispatch = make_dispatch(concurrency=8)
    for tp in TPS:
        dispatch.assign(tp, 0)
        dispatch.deliver(tp, records(tp, 0, 2))
    failing, other = take(dispatch, 0.0)
    effects = dispatch.report([(failing, [FAILURE], True)], now=0.0)
    assert [(tried.offset, delay) for tried, _, delay in effects.retried] == [(0, 1.0)]
    dispatch.report([(other, [DONE, DONE], True)], now=0.0)
    dispatch.deliver(other.epoch.tp, records(other.epoch.tp, 2, 1))
    assert [run.epoch for run in take(dispatch, 0.5)] == [other.epoch]
    assert dispatch.next_due() == 1.0
    (again,) = take(dispatch, 1.0)
    assert [(record.offset, again.epoch.attempt_at(record.offset)) for record in again.records] == [(0, 2), (1, 1)]
    assert dispatch.next_due() is None


def test_a_dead_letter_counts_only_once_the_broker_has_it() -> None:
    dispatch = make_dispatch()
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = take(dispatch, 0.0)
    effects = dispatch.report([(run, [POISON, DONE], True)], now=0.0)
    (send,) = effects.sends
    assert send.outgoing.topic == "dlq"
    assert send.failure == POISON
    ((offset, metadata),) = dispatch.commits().values()
    assert (offset, decode(offset, metadata)) == (0, [(1, 2)])
    assert not epoch.drained
    assert dispatch.acknowledge(send)
    assert dispatch.commits() == {("t", 0): (2, "")}
    assert epoch.drained


def test_without_a_dead_letter_topic_the_last_attempt_halts_and_the_commit_point_stays() -> None:
    dispatch = make_dispatch(dead_letter=False)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 3))
    (run,) = take(dispatch, 0.0)
    effects = dispatch.report([(run, [DONE, POISON], True)], now=0.0)
    assert effects.halted is not None
    assert effects.halted[0].offset == 1
    assert dispatch.commits() == {("t", 0): (1, "")}


def test_an_output_that_the_broker_never_takes_fails_its_record() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 1))
    (run,) = take(dispatch, 0.0)
    (output,) = dispatch.report([(run, [OUTPUT], True)], now=0.0).sends
    (letter,) = dispatch.refuse(output, POISON).sends
    assert letter.failure == POISON
    dispatch.acknowledge(letter)
    assert dispatch.commits() == {("t", 0): (1, "")}


def test_late_results_of_a_closed_epoch_do_not_touch_the_next_one() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = take(dispatch, 0.0)
    (output,) = dispatch.report([(run, [OUTPUT], False)], now=0.0).sends
    dispatch.close([("t", 0)])
    fresh = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    late = dispatch.report([(run, [DONE], True)], now=0.0)
    assert not late.finished
    assert not dispatch.acknowledge(output)
    assert not dispatch.refuse(output, POISON).sends
    assert fresh.tracker.commit_point == 0
    (again,) = take(dispatch, 0.0)
    assert [record.offset for record in again.records] == [0, 1]


def test_a_stuck_partition_drops_records_that_others_need_room_for() -> None:
    dispatch = make_dispatch(max_in_flight=40, concurrency=8)
    stuck, free = dispatch.assign(("t", 0), 0), dispatch.assign(("t", 1), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 40))
    (run,) = take(dispatch, 0.0)
    dispatch.report([(run, [FAILURE], True)], now=0.0)
    assert dispatch.balance(0.0) == ([], [])
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert (pause.epoch, pause.rewind_to) == (stuck, 20)
    assert stuck.tracker.unfinished == 20
    # Records that were fetched before the rewind are dropped. Otherwise offsets 20 to 29 would look like a gap.
    dispatch.deliver(("t", 0), records(("t", 0), 30, 5))
    assert stuck.tracker.unfinished == 20
    dispatch.deliver(("t", 1), records(("t", 1), 0, 10))
    assert [run.epoch for run in take(dispatch, 0.5)] == [free]
    dispatch.rewound(("t", 0))
    (retry,) = take(dispatch, 1.0)
    dispatch.report([(retry, [DONE] * 20, True)], now=1.0)
    assert dispatch.balance(1.0) == ([], [stuck])
    dispatch.deliver(("t", 0), records(("t", 0), 20, 1))
    assert stuck.tracker.commit_point == 20


def test_a_lane_that_has_given_everything_back_is_forgotten() -> None:
    dispatch = make_dispatch(order="key", max_in_flight=4)
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.assign(("t", 1), 0)
    dispatch.deliver(("t", 0), keyed(("t", 0), b"a", b"b", b"c", b"d"))
    dispatch.balance(0.0)
    ((pause,), _) = dispatch.balance(FULL_SECONDS)
    assert pause.rewind_to == 2
    assert [*epoch.lanes.by_key] == [b"a", b"b"]
    assert [record.offset for run in take(dispatch) for record in run.records] == [0, 1]


def test_caught_up_means_finished_up_to_the_ends_seen() -> None:
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.assign(("t", 1), None)
    ends = {("t", 0): 2, ("t", 1): 0}
    assert not dispatch.caught_up(ends)
    dispatch.reach(("t", 1), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = take(dispatch, 0.0)
    assert not dispatch.caught_up(ends)
    dispatch.report([(run, [DONE, DONE], True)], now=0.0)
    assert dispatch.caught_up(ends)


def test_records_of_partitions_that_are_gone_are_dropped() -> None:
    dispatch = make_dispatch()
    dispatch.deliver(("t", 0), records(("t", 0), 0, 3))
    dispatch.reach(("t", 0), 5)
    dispatch.committed(("t", 0), (5, ""))
    dispatch.rewound(("t", 0))
    assert dispatch.settled == 3
    assert take(dispatch, 0.0) == []
    assert dispatch.commits() == {}


def test_keys_run_side_by_side_and_each_in_order() -> None:
    dispatch = make_dispatch(order="key", concurrency=10)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), keyed(("t", 0), b"a", b"b", b"a", b"c"))
    assert [[r.offset for r in run.records] for run in take(dispatch)] == [[0, 2], [1], [3]]


def test_null_keys_have_no_order_unless_asked() -> None:
    for in_order, expected in ((False, [[0], [1], [2]]), (True, [[0]])):
        dispatch = make_dispatch(order="key", concurrency=10, null_keys_in_order=in_order)
        dispatch.assign(("t", 0), 0)
        dispatch.deliver(("t", 0), keyed(("t", 0), None, None, None))
        bundles = dispatch.take(0.0, 1)
        assert [[r.offset for run in bundle for r in run.records] for bundle in bundles] == expected


def test_without_order_a_retry_waits_alone_and_the_other_records_continue() -> None:
    dispatch = make_dispatch(order="none", concurrency=10)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 4))
    outcomes: list[Outcome] = [DONE, FAILURE, DONE, DONE]
    dispatch.report([(run, [each], True) for run, each in zip(take(dispatch, size=1), outcomes, strict=True)], now=0.0)
    ((offset, metadata),) = dispatch.commits().values()
    assert (offset, decode(offset, metadata)) == (1, [(2, 4)])
    (retry,) = take(dispatch, 1.0)
    assert [(r.offset, retry.epoch.attempt_at(r.offset)) for r in retry.records] == [(1, 2)]
    dispatch.report([(retry, [DONE], True)], now=1.0)
    assert dispatch.commits() == {("t", 0): (4, "")}


def test_a_restart_does_not_repeat_what_the_offset_map_knows() -> None:
    before = make_dispatch(order="none", concurrency=10)
    before.assign(("t", 0), 0)
    before.deliver(("t", 0), records(("t", 0), 0, 6))
    outcomes: list[Outcome] = [DONE, FAILURE, DONE, FAILURE, DONE, DONE]
    before.report([(run, [each], True) for run, each in zip(take(before, size=1), outcomes, strict=True)], now=0.0)
    ((offset, metadata),) = before.commits().values()

    after = make_dispatch(order="none", concurrency=10)
    after.assign(("t", 0), offset, metadata, decode(offset, metadata))
    after.deliver(("t", 0), records(("t", 0), offset, 7))
    assert [record.offset for run in take(after) for record in run.records] == [1, 3, 6, 7]
    assert after.commits() == {}, "nothing new is known yet"


def test_lanes_wait_rather_than_finish_what_no_commit_could_say() -> None:
    """Every other record is stuck: far more than the metadata of a commit can describe."""
    total = BITMAP_SPAN * 5 // 4
    dispatch = make_dispatch(order="none", concurrency=total, max_in_flight=2 * total)
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, total))
    held: list[LaneRun] = []
    for _ in range(total):
        bundles = dispatch.take(0.0, 1)
        if not bundles:
            break
        for number, (run,) in enumerate(bundles):
            if run.records[0].offset % 2 or number == 0:
                held.append(run)
            else:
                dispatch.report([(run, [DONE], True)], now=0.0)
    ((offset, metadata),) = dispatch.commits().values()
    assert 0 < len(metadata) <= MAX_BYTES
    assert decode(offset, metadata) == epoch.tracker.finished_ranges()
    assert epoch.map_room.highest_taken < BITMAP_SPAN, "records that would not fit into the map did not start"
    for run in held:
        dispatch.report([(run, [DONE], True)], now=0.0)
    while bundles := dispatch.take(0.0, 1_000):
        for bundle in bundles:
            for run in bundle:
                dispatch.report([(run, [DONE] * len(run.records), True)], now=0.0)
    assert dispatch.commits() == {("t", 0): (total, "")}


def test_lanes_that_reach_too_far_for_the_map_continue_with_near_records() -> None:
    """Each of 100 keys has records all over the partition; if only whole lanes could start, hardly any would."""
    total = 2 * BITMAP_SPAN
    dispatch = make_dispatch(order="key", concurrency=1, max_in_flight=2 * total)
    epoch = dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), [Record("t", 0, offset, b"%d" % (offset % 100), b"") for offset in range(total)])
    bundles = 0
    while taken := dispatch.take(0.0, 2_000):
        bundles += 1
        for run in taken[0]:
            dispatch.report([(run, [DONE] * len(run.records), True)], now=0.0)
            ((_, metadata),) = dispatch.commits().values()
            assert metadata or not epoch.tracker.finished_ranges(), "every map fits"
        dispatch.release()
    assert dispatch.commits() == {("t", 0): (total, "")}
    assert bundles < total / 500


def test_one_stuck_record_does_not_stop_what_follows_it_however_far() -> None:
    total = 2 * BITMAP_SPAN
    dispatch = make_dispatch(order="none", concurrency=4, max_in_flight=2 * total)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, total))
    ((stuck,), *_) = dispatch.take(0.0, 1)
    for _ in range(3):
        dispatch.release()
    while bundles := dispatch.take(0.0, 1_000):
        for bundle in bundles:
            for run in bundle:
                dispatch.report([(run, [DONE] * len(run.records), True)], now=0.0)
            dispatch.release()
    ((offset, metadata),) = dispatch.commits().values()
    assert offset == 0
    finished = decode(offset, metadata)
    assert finished[-1][1] == total
    assert len(finished) < MAX_RANGES
    dispatch.report([(stuck, [DONE], True)], now=0.0)
