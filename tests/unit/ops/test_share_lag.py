"""The lag and the status of share groups."""

import pytest

from penstock.core.progress.lag_status import Status
from penstock.kafka.admin.consumer_groups import SHARE, DescribedMember, GroupDescription
from penstock.ops.group_lag import PartitionLag, _judged_by_state

MEMBER = DescribedMember("m", "c", "h", None, (), ())


def test_the_lag_of_a_share_group_is_the_one_that_brokers_count() -> None:
    part = PartitionLag("orders", 0, committed=10, start=0, end=20)
    assert (part.lag, part.first_unfinished) == (10, 10)
    # Four records after the start offset are finished.
    shared = PartitionLag("orders", 0, committed=10, start=12, end=20, is_shared=True, counted_lag=6)
    assert (shared.lag, shared.first_unfinished, shared.lost) == (6, 14, 0)


@pytest.mark.parametrize(
    ("lag", "members", "status"), [(6, (), Status.STOP), (6, (MEMBER,), Status.OK), (0, (), Status.OK)]
)
def test_records_that_wait_in_a_group_without_members_are_a_stop(
    lag: int, members: tuple[DescribedMember, ...], status: Status
) -> None:
    group = GroupDescription("queue", SHARE, "Stable" if members else "Empty", "simple", "", members)
    part = PartitionLag("orders", 0, committed=10, start=0, end=20, counted_lag=lag)
    assert _judged_by_state(part, group).verdict.status is status
