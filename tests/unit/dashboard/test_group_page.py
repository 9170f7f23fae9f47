"""When retention will delete what a group has not finished."""

import pytest

from penstock.dashboard.pages.group_page import fetched_to, retention_margin
from penstock.ops.group_lag import PartitionLag
from penstock.ops.reported_runs import SeenRun
from penstock.ops.runs import RegisteredRun


@pytest.mark.parametrize(
    ("rate_in", "rate_out", "margin"),
    [
        (100.0, 0.0, 3000.0),  # a stopped group falls back by a second each second
        (100.0, 50.0, 6000.0),
        (100.0, 100.0, None),
        (100.0, 98.0, None),  # no more than noise
        (100.0, 200.0, None),
        (0.0, 0.0, 3000.0),
        (0.0, 5.0, None),
        (None, None, None),
    ],
)
def test_the_margin_shrinks_with_the_speed_at_which_the_group_falls_back(
    rate_in: float | None, rate_out: float | None, margin: float | None
) -> None:
    part = PartitionLag(
        "orders", 0, committed=0, start=0, end=10, lag_seconds=600.0, rate_in=rate_in, rate_out=rate_out
    )
    assert retention_margin(part, 3600.0) == margin


def test_a_group_without_lag_loses_nothing() -> None:
    part = PartitionLag("orders", 0, committed=10, start=0, end=10, lag_seconds=0.0, rate_in=9.0, rate_out=0.0)
    assert retention_margin(part, 3600.0) is None


def test_a_margin_of_months_is_none() -> None:
    part = PartitionLag("orders", 0, committed=0, start=0, end=10, lag_seconds=1.0, rate_in=14.0, rate_out=13.0)
    assert retention_margin(part, 7 * 24 * 3600.0) is None


def test_how_far_the_owner_has_fetched_is_taken_from_what_runs_say() -> None:
    run = RegisteredRun(1, 2.0, "here", "shop", "local", ("shop",))
    part = {"topic": "orders", "partition": 3, "position": 40}
    members = [{"group": "shop", "partitions": [part]}, {"group": "other", "partitions": [{**part, "position": 99}]}]
    runs = [SeenRun(run, is_here=True, picture=None), SeenRun(run, is_here=False, picture={"members": members})]
    assert fetched_to(runs, "shop", ("orders", 3)) == 40
    assert fetched_to(runs, "shop", ("orders", 4)) is None
