"""Where a handler resumes, from what the group, an old checkpoint, the logs and the options say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.spark.driver.resume_positions import ResumePositions, resume
from penstock.spark.pipelines.resume_offsets import Log, Offsets

A: TopicPartition = ("orders", 0)
B: TopicPartition = ("orders", 1)
LOGS = {A: Log(10, 100), B: Log(0, 50)}


def resumed(start: int | None = None, **known: Any) -> ResumePositions:
    """``start`` is what the option means for each partition, None for the earliest."""
    given: dict[str, Any] = {
        "checkpoint": {}, "committed": {}, "forced": {}, "starts": dict.fromkeys(LOGS, start), **known
    }  # fmt: skip
    return resume(LOGS, **given)


def test_a_new_group_starts_where_it_is_told_to() -> None:
    assert resumed().positions == {A: 10, B: 0}
    assert resumed(starts={A: 100, B: 50}).positions == {A: 100, B: 50}
    assert resumed(starts={A: 42, B: None}).positions == {A: 42, B: 0}
    assert not resumed().reset


def test_a_start_that_the_log_does_not_have_is_reported_and_becomes_the_nearest_that_it_has() -> None:
    found = resumed(starts={A: 4, B: 51})
    assert found.positions == {A: 10, B: 50}
    assert [(each.tp, each.offset, each.moved_to, each.skipped) for each in found.moved] == [
        (A, 4, 10, 6),
        (B, 51, 50, 50),
    ]


def test_an_offset_above_the_end_that_is_forced_replays_nothing() -> None:
    found = resumed(committed={A: 40, B: 20}, forced={A: 1_000})
    assert found.positions == {A: 100, B: 20}
    assert [(each.offset, each.moved_to) for each in found.moved] == [(1_000, 100)]


def test_the_group_s_offset_comes_before_the_option() -> None:
    assert resumed(committed={A: 40}, starts={A: 100, B: 50}).positions == {A: 40, B: 50}


def test_of_the_group_and_an_old_checkpoint_the_higher_offset_counts() -> None:
    assert resumed(checkpoint={A: 40, B: 20}, committed={A: 30, B: 21}).positions == {A: 40, B: 21}


def test_a_partition_that_the_old_checkpoint_lacks_is_read_from_its_start_whatever_the_option() -> None:
    assert resumed(checkpoint={A: 40}, committed={A: 40}, starts={A: 100, B: 50}).positions == {A: 40, B: 0}


@pytest.mark.parametrize(
    ("start", "offset", "moved_to", "skipped"), [(None, 10, 10, 6), (100, 100, 100, 96), (5, 10, 10, 6)]
)
def test_records_that_retention_took_are_reported_and_passed_as_start_says(
    start: int | None, offset: int, moved_to: int, skipped: int
) -> None:
    found = resumed(committed={A: 4, B: 20}, starts={A: start, B: start})
    assert found.positions == {A: offset, B: 20}
    assert found.moved == (OutOfRange(A, 4, 10, 100, moved_to),)
    assert found.moved[0].skipped == skipped
    assert found.reset == {A}


@pytest.mark.parametrize(("start", "offset"), [(None, 0), (50, 50)])
def test_a_log_that_was_cut_is_reported_and_started_again(start: int | None, offset: int) -> None:
    found = resumed(committed={A: 40, B: 60}, starts={A: start, B: start})
    assert found.positions == {A: 40, B: offset}
    assert found.reset == {B}


def test_what_is_known_of_a_topic_that_was_recreated_does_not_count() -> None:
    found = resumed(checkpoint={A: 40, B: 20}, committed={A: 40}, renewed={"orders"})
    assert found.positions == {A: 10, B: 0}
    assert [(each.offset, each.moved_to, each.skipped) for each in found.moved] == [(40, 10, 0), (20, 0, 0)]


def test_what_is_forced_comes_before_everything_that_is_known() -> None:
    found = resumed(checkpoint={A: 40, B: 20}, committed={A: 40, B: 20}, forced={A: 15})
    assert found.positions == {A: 15, B: 20}
    assert found.forced == found.reset == {A}
    assert resumed(committed={A: 40, B: 20}, forced={A: None}).positions == {A: 10, B: 20}


tps = st.sampled_from([A, B, ("returns", 0)])
known = st.dictionaries(tps, st.integers(0, 120))


@given(checkpoint=known, committed=known, starts=st.tuples(*[st.none() | st.integers(0, 120)] * 2))
def test_every_partition_resumes_inside_its_log_and_nothing_finished_there_is_repeated(
    checkpoint: Offsets, committed: Offsets, starts: tuple[int | None, int | None]
) -> None:
    found = resumed(checkpoint=checkpoint, committed=committed, starts=dict(zip(LOGS, starts, strict=True)))
    assert found.positions.keys() == LOGS.keys()
    for tp, log in LOGS.items():
        assert log.start <= found.positions[tp] <= log.end
        furthest = max(checkpoint.get(tp, -1), committed.get(tp, -1))
        if log.start <= furthest <= log.end:
            assert found.positions[tp] == furthest
        elif furthest >= 0:
            assert tp in found.reset
