"""Which slices start, how long they are, and what their results mean for the partition."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.slices import PartitionSlices, Reached, Wait, common, plan

NOW = 1_000.0


def partition(number: int, position: int = 0, end: int = 100, **options: float) -> PartitionSlices:
    return PartitionSlices(("orders", number), 1, position, end=end, **options)  # type: ignore[arg-type]


def planned(*partitions: PartitionSlices, free: int = 4, **options: object) -> list[list[tuple[int, int, int]]]:
    """The partition, start and end of each slice, by task."""
    chosen = {"slots": 2, "most": 1_000, "seconds": 10.0, "may_share": True, **options}
    bundles = plan(partitions, NOW, free=free, **chosen)  # type: ignore[arg-type]
    return [[(each.tp[1], each.start, each.end) for each in bundle] for bundle in bundles]


def test_each_partition_with_records_gets_one_slice_at_a_time() -> None:
    both = partition(0), partition(1, position=40)
    assert planned(*both, partition(2, position=100)) == [[(0, 0, 100)], [(1, 40, 100)]]
    assert planned(*both) == [], "they run"


def test_a_slice_is_no_larger_than_the_limit_and_the_next_begins_where_it_ended() -> None:
    one = partition(0, end=2_500)
    assert planned(one) == [[(0, 0, 1_000)]]
    one.finish(Reached(1_000, "", 1_000), NOW)
    assert planned(one) == [[(0, 1_000, 2_000)]]
    one.finish(Reached(1_700, "", 1_700), NOW)
    assert planned(one) == [[(0, 1_700, 2_500)]]


def test_the_partition_that_waits_longest_comes_first() -> None:
    partitions = [partition(number, ended_at=NOW - number) for number in range(4)]
    assert planned(*partitions, free=2, may_share=False) == [[(3, 0, 100)], [(2, 0, 100)]]


def test_with_more_partitions_than_slots_slices_are_shorter_down_to_a_second() -> None:
    def seconds(count: int) -> float:
        many = [partition(number) for number in range(count)]
        (first, *_), *_ = plan(many, NOW, free=1, slots=2, most=10, seconds=10.0, may_share=False)
        return first.seconds

    assert [seconds(count) for count in (1, 2, 4, 10, 1_000)] == [10.0, 10.0, 5.0, 2.0, 1.0]


def test_small_slices_share_tasks_where_there_are_too_many_and_large_ones_do_not() -> None:
    small, large = [partition(number) for number in range(6)], [partition(9, end=50_000), partition(8, end=50_000)]
    bundles = planned(*small, *large, free=3)
    assert sorted(len(bundle) for bundle in bundles) == [1, 1, 6]
    assert planned(*small, *large, free=3) == []


def test_a_record_that_waits_does_not_hold_up_what_is_new_and_is_due_later() -> None:
    one = partition(0, end=10)
    planned(one)
    one.finish(Reached(3, "map", 10, waiting={3: Wait(1, NOW + 5)}), NOW)
    assert planned(one) == []
    assert one.next_due() == NOW + 5
    one.end = 12
    (bundle,) = plan([one], NOW, free=1, slots=1, most=1_000, seconds=10.0, may_share=False)
    assert (bundle[0].start, bundle[0].end, bundle[0].metadata) == (3, 12, "map")
    assert bundle[0].waiting == {3: Wait(1, NOW + 5)}
    one.finish(Reached(3, "map", 12, waiting={3: Wait(1, NOW - 1)}), NOW)
    assert planned(one) == [[(0, 3, 12)]], "it is due"


def test_a_failed_slice_starts_again_as_a_whole_after_its_wait() -> None:
    one = partition(0)
    planned(one)
    one.fail(NOW, again_at=NOW + 2)
    assert planned(one) == []
    one.again_at = NOW
    assert planned(one) == [[(0, 0, 100)]]


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans()), max_size=40),
    st.lists(st.integers(0, 40), min_size=3, max_size=3),
)
def test_an_offset_of_a_slice_is_finished_if_the_task_that_owns_it_says_so(
    records: list[tuple[int, bool]], read: list[int]
) -> None:
    """Each record belongs to one of three tasks, is finished or not, and each task has read up to some offset."""
    parts = []
    for share in range(3):
        read_to = min(read[share], len(records))
        open_offsets = [at for at in range(read_to) if records[at][0] == share and not records[at][1]]
        point = open_offsets[0] if open_offsets else read_to
        ends = [*open_offsets[1:], read_to]
        finished = [(at + 1, end) for at, end in zip(open_offsets, ends, strict=bool(open_offsets)) if end > at + 1]
        parts.append((point, finished, read_to))
    point, ranges, read_to = common(parts)
    done = {at for at in range(len(records)) if at < point or any(start <= at < end for start, end in ranges)}
    expected = {
        at for at in range(max(part[2] for part in parts)) if all(at < part[2] for part in parts) and records[at][1]
    }
    # Nothing counts as finished that some task has not read, or that its owner has not finished.
    assert all(at in expected for at in done)
    assert all(at in done for at in expected)
    assert read_to == min(part[2] for part in parts)


def test_no_slice_reaches_past_the_stop_of_a_replay() -> None:
    one = partition(0, position=40, end=100, stop=60)
    assert planned(one) == [[(0, 40, 60)]]
    one.finish(Reached(60, "", 60), NOW)
    one.log_ends_at(200)
    assert planned(one) == []
    one.stop = None
    one.log_ends_at(200)
    assert planned(one) == [[(0, 60, 200)]]
