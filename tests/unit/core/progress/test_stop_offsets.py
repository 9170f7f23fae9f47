"""Where a replay stops: what is at or above the stop of a partition is not delivered."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.stop_offsets import stop_at
from penstock.core.records.record import TopicPartition

TP = ("orders", 0)
Ends = dict[TopicPartition, int]


def stopped(stop: int, offsets: list[int], end: int | None = None) -> tuple[list[int] | None, Ends, bool]:
    """What is left of the records and the ends, and whether the stop was reached."""
    records, ends = {TP: list(offsets)} if offsets else {}, {} if end is None else {TP: end}
    reached = stop_at({TP: stop}, records, ends, offset_of=lambda offset: offset)
    return records.get(TP), ends, TP in reached


def test_records_at_and_above_the_stop_are_dropped() -> None:
    assert stopped(5, [3, 4, 5, 6]) == ([3, 4], {TP: 5}, True)
    assert stopped(5, [5, 6]) == (None, {TP: 5}, True)


def test_the_last_record_below_the_stop_reaches_it() -> None:
    assert stopped(5, [3, 4]) == ([3, 4], {TP: 5}, True)
    assert stopped(5, [2, 3]) == ([2, 3], {}, False)


def test_a_record_above_a_gap_proves_that_the_stop_is_reached() -> None:
    assert stopped(5, [1, 9]) == ([1], {TP: 5}, True)


def test_the_end_of_the_log_counts_only_up_to_the_stop() -> None:
    assert stopped(5, [], end=4) == (None, {TP: 4}, False)
    assert stopped(5, [], end=5) == (None, {TP: 5}, True)
    assert stopped(5, [3], end=9) == ([3], {TP: 5}, True)


@given(st.sets(st.integers(0, 30), min_size=1), st.integers(0, 30), st.integers(1, 10))
def test_each_record_of_the_range_is_delivered_once_and_no_later_one(
    offsets: set[int], stop: int, at_once: int
) -> None:
    log, delivered, was_reached = sorted(offsets), [], False
    for first in range(0, len(log), at_once):
        batch = log[first : first + at_once]
        kept, ends, reached = stopped(stop, batch, end=log[-1] + 1 if first + at_once >= len(log) else None)
        delivered += kept or []
        assert all(end <= stop for end in ends.values())
        was_reached = was_reached or reached
    assert delivered == [offset for offset in log if offset < stop]
    assert was_reached == (log[-1] >= stop - 1)
