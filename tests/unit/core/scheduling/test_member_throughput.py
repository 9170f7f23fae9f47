"""What a member can handle, from commits: only those with a backlog count."""

import pytest

from penstock.core.progress.lag_status import CommitSeen
from penstock.core.scheduling.member_throughput import PartitionRates, rate_while_behind, throughput_of_a_member


def test_only_the_time_with_a_backlog_counts() -> None:
    commits = [
        CommitSeen(0, 0, lag=0),
        CommitSeen(100, 10, lag=5_000),
        CommitSeen(110, 1_010, lag=4_000),
        CommitSeen(120, 1_510, lag=3_500, finished_above=500),
        CommitSeen(130, 5_000, lag=0),
        CommitSeen(300, 5_001, lag=None),
    ]
    assert rate_while_behind(commits, arrivals=1.0) == 100.0
    assert rate_while_behind(commits, arrivals=390.0) == 100.0
    assert rate_while_behind(commits, arrivals=399.0) == 100.0
    assert rate_while_behind(commits, arrivals=400.0) is None, "4,000 are what arrives in ten seconds"
    assert rate_while_behind(commits[:2], arrivals=1.0) is None, "it was not behind at the first commit"


def test_what_goes_back_and_what_does_not_move() -> None:
    back = [CommitSeen(0, 100, lag=900), CommitSeen(10, 0, lag=1_000), CommitSeen(20, 50, lag=950)]
    assert rate_while_behind(back, arrivals=0.0) == 5.0
    assert rate_while_behind([CommitSeen(0, 5, lag=9), CommitSeen(10, 5, lag=9)], arrivals=0.0) == 0.0
    assert rate_while_behind([], arrivals=0.0) is None


def test_a_member_counts_with_all_of_its_partitions_if_one_is_behind() -> None:
    behind = [PartitionRates("a", 40.0, 50.0), PartitionRates("a", 10.0, None), PartitionRates("a", None, None)]
    idle = [PartitionRates("b", 3.0, None)]
    assert throughput_of_a_member([*behind, *idle]) == 60.0
    assert throughput_of_a_member([*behind, PartitionRates("b", 3.0, 100.0)]) == 80.0
    assert throughput_of_a_member(idle) is None
    assert throughput_of_a_member([PartitionRates("a", 0.0, 0.0)]) == pytest.approx(0.0)
