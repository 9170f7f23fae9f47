"""Where a handler goes on, from what the checkpoint, the group and the logs say."""

import pytest

from penstock.core.record import TopicPartition
from penstock.spark.offsets import EARLIEST, Log, Offsets, from_json, resume, to_json

A: TopicPartition = ("orders", 0)
B: TopicPartition = ("orders", 1)
LOGS = {A: Log(10, 100), B: Log(0, 50)}


def test_offsets_are_written_as_spark_reads_them() -> None:
    offsets: Offsets = {("orders", 10): 7, ("orders", 2): EARLIEST, ("returns", 0): 0}
    assert to_json(offsets) == '{"orders": {"2": -2, "10": 7}, "returns": {"0": 0}}'
    assert from_json(to_json(offsets)) == offsets


@pytest.mark.parametrize("text", ["", "{", "[]", '{"orders": 5}', '{"orders": {"x": 1}}', '{"orders": {"0": null}}'])
def test_what_spark_never_writes_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        from_json(text)


def test_a_new_group_starts_at_the_start_or_at_the_end() -> None:
    earliest = resume(LOGS, finished={}, committed={}, start="earliest")
    assert earliest.offsets == {A: EARLIEST, B: EARLIEST}
    assert earliest.left(LOGS) == {A: range(10, 100), B: range(50)}
    latest = resume(LOGS, finished={}, committed={}, start="latest")
    assert latest.offsets == {A: 100, B: 50}
    assert latest.left(LOGS) == {}
    assert not earliest.checkpoint_fits
    assert not latest.checkpoint_fits


def test_without_a_checkpoint_the_group_s_offsets_count() -> None:
    resumed = resume(LOGS, finished={}, committed={A: 40}, start="latest")
    assert resumed.offsets == {A: 40, B: 50}
    assert not resumed.checkpoint_fits


def test_a_checkpoint_ahead_of_the_group_is_gone_on_from() -> None:
    resumed = resume(LOGS, finished={A: 40, B: 20}, committed={A: 30}, start="earliest")
    assert resumed.offsets == {A: 40, B: 20}
    assert resumed.checkpoint_fits
    assert resumed.left(LOGS) == {A: range(40, 100), B: range(20, 50)}


def test_a_checkpoint_behind_the_group_does_not_fit() -> None:
    resumed = resume(LOGS, finished={A: 40, B: 20}, committed={A: 30, B: 21}, start="earliest")
    assert resumed.offsets == {A: 40, B: 21}
    assert not resumed.checkpoint_fits


def test_a_partition_that_was_added_is_read_from_its_start_whatever_the_option() -> None:
    resumed = resume(LOGS, finished={A: 40}, committed={A: 40}, start="latest")
    assert resumed.offsets == {A: 40, B: EARLIEST}
    assert resumed.checkpoint_fits


def test_a_checkpoint_of_other_topics_does_not_fit() -> None:
    finished: Offsets = {A: 40, B: 20, ("returns", 0): 3}
    resumed = resume(LOGS, finished=finished, committed={}, start="earliest")
    assert resumed.offsets == {A: 40, B: 20}
    assert not resumed.checkpoint_fits


def test_records_that_retention_took_are_reported_and_passed() -> None:
    resumed = resume(LOGS, finished={A: 4, B: 20}, committed={}, start="latest")
    assert resumed.offsets == {A: EARLIEST, B: 20}
    assert resumed.surprises == ("Records 4 to 9 of orders[0] were deleted before they were handled.",)
    assert not resumed.checkpoint_fits
    assert resumed.left(LOGS)[A] == range(10, 100)


def test_retention_moves_a_new_checkpoint_to_the_log_s_start_and_not_to_its_end() -> None:
    assert resume(LOGS, finished={}, committed={A: 4}, start="latest").offsets == {A: EARLIEST, B: 50}


@pytest.mark.parametrize(("start", "offset"), [("earliest", EARLIEST), ("latest", 50)])
def test_a_log_that_was_cut_is_reported_and_started_anew(start: str, offset: int) -> None:
    resumed = resume(LOGS, finished={A: 40, B: 60}, committed={}, start=start)  # type: ignore[arg-type]
    assert resumed.offsets == {A: 40, B: offset}
    assert "ends at 50" in resumed.surprises[0]
    assert not resumed.checkpoint_fits


def test_an_empty_log_that_starts_late_has_nothing_left() -> None:
    logs = {A: Log(500, 500)}
    assert resume(logs, finished={}, committed={}, start="earliest").left(logs) == {}
