"""Where a pipeline resumes, for all states of checkpoint, group and logs."""

from penstock.spark.pipelines.resume_offsets import EARLIEST, Log
from penstock.spark.pipelines.resumption import resume_pipeline

A, A1, B = ("a", 0), ("a", 1), ("b", 0)


def test_a_new_pipeline_begins_at_the_group_s_offsets_else_where_start_says() -> None:
    logs = {A: Log(2, 10), B: Log(0, 5)}
    resumption = resume_pipeline(logs, finished={}, committed={A: 4}, start="latest")
    assert (resumption.offsets, resumption.checkpoint_fits) == ({A: 4, B: 5}, False)
    resumption = resume_pipeline(logs, finished={}, committed={}, start="earliest")
    assert resumption.offsets == {A: EARLIEST, B: EARLIEST}
    assert resumption.left(logs) == {A: range(2, 10), B: range(5)}


def test_a_checkpoint_that_is_at_the_group_s_offsets_or_ahead_of_them_is_gone_on_with() -> None:
    logs = {A: Log(0, 10)}
    for committed in ({}, {A: 5}, {A: 6}):
        resumption = resume_pipeline(logs, finished={A: 6}, committed=committed, start="earliest")
        assert (resumption.offsets, resumption.checkpoint_fits) == ({A: 6}, True)


def test_a_group_that_is_ahead_is_followed_and_the_checkpoint_does_not_fit() -> None:
    resumption = resume_pipeline({A: Log(0, 10)}, finished={A: 6}, committed={A: 7}, start="earliest")
    assert (resumption.offsets, resumption.checkpoint_fits) == ({A: 7}, False)


def test_new_partitions_are_sparks_to_begin_unless_the_group_knows_them() -> None:
    logs = {A: Log(0, 10), A1: Log(0, 3)}
    resumption = resume_pipeline(logs, finished={A: 6}, committed={A: 6}, start="latest")
    assert (resumption.offsets, resumption.checkpoint_fits) == ({A: 6, A1: EARLIEST}, True)
    resumption = resume_pipeline(logs, finished={A: 6}, committed={A: 6, A1: 2}, start="latest")
    assert (resumption.offsets, resumption.checkpoint_fits) == ({A: 6, A1: 2}, False)


def test_topics_that_an_output_does_not_read_say_nothing_about_its_checkpoint() -> None:
    resumption = resume_pipeline(
        {A: Log(0, 10), B: Log(0, 9)}, finished={A: 6}, committed={A: 6, B: 3}, start="earliest"
    )
    assert resumption.checkpoint_fits


def test_deleted_records_and_shorter_logs_are_reported() -> None:
    resumption = resume_pipeline({A: Log(8, 10)}, finished={A: 6}, committed={}, start="earliest")
    assert (resumption.offsets, resumption.checkpoint_fits) == ({A: EARLIEST}, False)
    assert resumption.warnings == ("Records 6 to 7 of a[0] were deleted before they were handled.",)
    resumption = resume_pipeline({A: Log(0, 3)}, finished={}, committed={A: 6}, start="latest")
    assert resumption.offsets == {A: 3}
    assert "ends at 3, but the group is at 6" in resumption.warnings[0]
    gone = resume_pipeline({}, finished={A: 6}, committed={}, start="earliest")
    assert not gone.checkpoint_fits


def test_where_another_tool_has_moved_the_group_its_offset_counts_back_and_forth() -> None:
    logs = {A: Log(0, 10), A1: Log(0, 10)}
    for offset in (2, 8):
        resumption = resume_pipeline(
            logs, finished={A: 6, A1: 3}, committed={A: offset, A1: 2}, start="earliest", moved={A}
        )
        assert (resumption.offsets, resumption.checkpoint_fits) == ({A: offset, A1: 3}, False)
    # Expired commits do not count as moved.
    resumption = resume_pipeline(logs, finished={A: 6, A1: 3}, committed={}, start="earliest", moved={A})
    assert (resumption.offsets, resumption.checkpoint_fits) == ({A: 6, A1: 3}, True)
