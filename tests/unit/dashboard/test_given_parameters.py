"""What a browser sends: a wrong value is an error that names it, never a bug."""

import pytest

from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.pages import group_page
from penstock.dashboard.pages.given_parameters import time_of, whole_of
from penstock.errors import ConfigError, PenstockError
from penstock.kafka import Cluster

_MAX_INT64 = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "time"), [("", None), ("1700000000", 1.7e9), ("12.5", 12.5), ("2030-01-31T12:00:00", 1_896_091_200.0)]
)
def test_a_time_is_seconds_or_a_date(text: str, time: float | None) -> None:
    assert time_of({"since": text}, "since") == time


@pytest.mark.parametrize("text", ["9" * 400, "1" * 30, "yesterday", "-5", "nan", "inf", "1e400", "9" * 5_000, "\u0663"])
def test_a_time_that_no_record_can_have_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="since"):
        time_of({"since": text}, "since")


@pytest.mark.parametrize("text", ["-1", "x", "1.5", str(_MAX_INT64 + 1), "9" * 4_000, "\u0663"])
def test_a_number_that_no_offset_can_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="offset"):
        whole_of({"offset": text}, "offset")


def _no_cluster() -> Cluster:
    raise AssertionError("no test here needs Kafka")


@pytest.mark.parametrize("at", ["", "orders", "orders/", "/3", "orders/x", f"orders/{2**31}", "o/" + "9" * 9_999])
def test_a_partition_that_cannot_exist_is_refused(at: str) -> None:
    context = DashboardContext(ClusterConnection(_no_cluster), allow_writes=False, note=pytest.fail)
    with pytest.raises(PenstockError, match="partition"):
        group_page.PAGE.sources["partition"](context, {"name": "shop", "at": at})


@pytest.mark.parametrize("window", ["0s", "8d", "x", "", "9" * 400 + "s"])
def test_a_window_of_history_that_makes_no_sense_is_refused(window: str) -> None:
    context = DashboardContext(ClusterConnection(_no_cluster), allow_writes=False, note=pytest.fail)
    (history,) = group_page.PAGE.endpoints
    with pytest.raises(ConfigError, match="window"):
        history.answer(context, {"name": "shop", "window": window})
