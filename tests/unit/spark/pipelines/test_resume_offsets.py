"""Where a handler resumes, by its checkpoint, its group and the logs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.spark.pipelines.resume_offsets import EARLIEST, Log, Offsets, Resumption, from_json, resume, to_json

A: TopicPartition = ("orders", 0)
B: TopicPartition = ("orders", 1)
LOGS = {A: Log(10, 100), B: Log(0, 50)}


def test_offsets_are_written_as_spark_reads_them() -> None:
    offsets: Offsets = {("orders", 10): 7, ("orders", 2): EARLIEST, ("returns", 0): 0}
    assert to_json(offsets) == '{"orders": {"2": -2, "10": 7}, "returns": {"0": 0}}'
    assert from_json(to_json(offsets)) == offsets


@pytest.mark.parametrize("text", ["", "{", "[]", '{"orders": 5}', '{"orders": {"x": 1}}', '{"orders": {"0": null}}'])
def test_what_spark_never_writes_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any text will do
        from_json(text)


def resumed(start: int | None = None, **known: Any) -> Resumption:
    """``start`` is what the option means for each partition, None for the earliest."""
    given: dict[str, Any] = {"finished": {}, "committed": {}, "starts": dict.fromkeys(LOGS, start), **known}
    return resume(LOGS, **given)


def test_a_new_group_starts_at_the_given_offset() -> None:
    earliest = resumed()
    assert earliest.offsets == {A: EARLIEST, B: EARLIEST}
    assert earliest.begin(LOGS) == {A: 10, B: 0}
    latest = resumed(starts={A: 100, B: 50})
    assert latest.offsets == latest.begin(LOGS) == {A: 100, B: 50}
    assert resumed(starts={A: 42, B: None}).offsets == {A: 42, B: EARLIEST}
    assert not earliest.checkpoint_fits
    assert not latest.checkpoint_fits
    assert not earliest.reset | latest.reset


def test_a_start_that_the_log_does_not_have_is_reported_and_becomes_the_nearest_that_it_has() -> None:
    found = resumed(starts={A: 4, B: 51})
    assert found.offsets == {A: EARLIEST, B: 50}
    assert [(each.tp, each.offset, each.moved_to, each.skipped) for each in found.moved] == [
        (A, 4, 10, 6),
        (B, 51, 50, 50),
    ]


def test_an_offset_above_the_end_that_is_forced_replays_nothing() -> None:
    found = resumed(committed={A: 40, B: 20}, forced={A: 1_000})
    assert found.offsets == {A: 100, B: 20}
    assert [(each.offset, each.moved_to) for each in found.moved] == [(1_000, 100)]


def test_without_a_checkpoint_the_group_s_offsets_count() -> None:
    found = resumed(committed={A: 40}, starts={A: 100, B: 50})
    assert found.offsets == {A: 40, B: 50}
    assert not found.checkpoint_fits


def test_a_checkpoint_ahead_of_the_group_is_gone_on_from() -> None:
    found = resumed(finished={A: 40, B: 20}, committed={A: 30})
    assert found.offsets == {A: 40, B: 20}
    assert found.checkpoint_fits


def test_a_checkpoint_behind_the_group_does_not_fit() -> None:
    found = resumed(finished={A: 40, B: 20}, committed={A: 30, B: 21})
    assert found.offsets == {A: 40, B: 21}
    assert not found.checkpoint_fits


def test_a_partition_that_was_added_is_read_from_its_start_with_every_option() -> None:
    found = resumed(finished={A: 40}, committed={A: 40}, starts={A: 100, B: 50})
    assert found.offsets == {A: 40, B: EARLIEST}
    assert found.checkpoint_fits


def test_a_checkpoint_of_other_topics_does_not_fit() -> None:
    finished: Offsets = {A: 40, B: 20, ("returns", 0): 3}
    found = resumed(finished=finished)
    assert found.offsets == {A: 40, B: 20}
    assert not found.checkpoint_fits


@pytest.mark.parametrize(
    ("start", "offset", "moved_to", "skipped"), [(None, EARLIEST, 10, 6), (100, 100, 100, 96), (5, EARLIEST, 10, 6)]
)
def test_records_that_retention_took_are_reported_and_passed_as_start_says(
    start: int | None, offset: int, moved_to: int, skipped: int
) -> None:
    found = resumed(finished={A: 4, B: 20}, starts={A: start, B: start})
    assert found.offsets == {A: offset, B: 20}
    assert found.moved == (OutOfRange(A, 4, 10, 100, moved_to),)
    assert found.moved[0].skipped == skipped
    assert found.reset == {A}
    assert not found.checkpoint_fits


@pytest.mark.parametrize(("start", "offset"), [(None, EARLIEST), (50, 50)])
def test_a_truncated_log_is_reported_and_read_from_its_start(start: int | None, offset: int) -> None:
    found = resumed(finished={A: 40, B: 60}, starts={A: start, B: start})
    assert found.offsets == {A: 40, B: offset}
    assert found.reset == {B}
    assert not found.checkpoint_fits


def test_facts_about_a_recreated_topic_from_before_do_not_count() -> None:
    found = resumed(finished={A: 40, B: 20}, committed={A: 40}, renewed={"orders"})
    assert found.offsets == {A: EARLIEST, B: EARLIEST}
    assert [(each.offset, each.moved_to, each.skipped) for each in found.moved] == [(40, 10, 0), (20, 0, 0)]
    assert not found.checkpoint_fits


def test_what_is_forced_comes_before_everything_that_is_known() -> None:
    found = resumed(finished={A: 40, B: 20}, committed={A: 40, B: 20}, forced={A: 15})
    assert found.offsets == {A: 15, B: 20}
    assert found.forced == found.reset == {A}
    assert not found.checkpoint_fits
    assert resumed(finished={A: 40, B: 20}, forced={A: None}).offsets == {A: EARLIEST, B: 20}


tps = st.sampled_from([A, B, ("returns", 0)])
known = st.dictionaries(tps, st.integers(0, 120))


@given(finished=known, committed=known, starts=st.tuples(*[st.none() | st.integers(0, 120)] * 2))
def test_every_partition_resumes_inside_its_log_and_repeats_nothing_that_is_finished(
    finished: Offsets, committed: Offsets, starts: tuple[int | None, int | None]
) -> None:
    found = resume(LOGS, finished=finished, committed=committed, starts=dict(zip(LOGS, starts, strict=True)))
    begin = found.begin(LOGS)
    assert begin.keys() == LOGS.keys()
    for tp, log in LOGS.items():
        assert log.start <= begin[tp] <= log.end
        furthest = max(finished.get(tp, -1), committed.get(tp, -1))
        if log.start <= furthest <= log.end:
            assert begin[tp] == furthest
        elif furthest >= 0:
            assert tp in found.reset
    if found.checkpoint_fits:
        assert {tp: begin[tp] for tp in finished} == finished
