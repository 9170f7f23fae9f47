"""What a group had committed at a time in the past, by the commits that are still known."""

import pytest

from penstock.core.progress.commit_log import CommitValue
from penstock.ops.lag_history import committed_at

COMMITS = [(10.0, CommitValue(100, "")), (20.0, CommitValue(200, "")), (30.0, CommitValue(150, ""))]


@pytest.mark.parametrize(
    ("at", "offset"),
    [(10.0, 100), (19.9, 100), (20.0, 200), (29.0, 200), (35.0, 150), (8.0, 100), (7.0, None)],
)
def test_the_last_commit_before_a_time_counts(at: float, offset: int | None) -> None:
    assert committed_at(COMMITS, at, now=999, step=2.0) == offset


def test_a_partition_without_a_commit_since_then_has_the_offset_of_now() -> None:
    assert committed_at([], 5.0, now=7, step=1.0) == 7
