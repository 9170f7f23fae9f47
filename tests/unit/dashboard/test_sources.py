"""What sources of the feed keep between two reads: nothing is counted twice, and nothing is kept of what is gone."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.core.records.record import Record, TopicPartition
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext, Rows
from penstock.dashboard.pages import letter_sources, overview_page, records_page
from penstock.dashboard.pages.letter_sources import LettersSource
from penstock.dashboard.pages.overview_page import OverviewSource
from penstock.dashboard.pages.records_page import NewRecordsSource
from penstock.errors import PenstockError, ServerError
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import GroupDescription, GroupListing
from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops.group_lag import GroupLag, PartitionLag
from penstock.ops.lag_history import LagPoint
from penstock.ops.reported_runs import SeenRun
from penstock.ops.runs import RegisteredRun


class OneTopic:
    """A cluster with one topic of one partition. ``fails_at`` is an offset that no broker sends."""

    brokers = "127.0.0.1:9092"

    def __init__(self) -> None:
        self.end = 0
        self.fails_at: int | None = None

    def require_topics(self, _names: list[str]) -> None: ...

    def topic_partitions(self, names: list[str]) -> list[TopicPartition]:
        return [(name, 0) for name in names]

    def bounds(self, tps: list[TopicPartition]) -> dict[TopicPartition, Bounds]:
        return {tp: Bounds(0, self.end) for tp in tps}

    def records(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Iterator[Record]:
        for (topic, partition), start in starts.items():
            for offset in range(start, ends[topic, partition]):
                if offset == self.fails_at:
                    raise ServerError("The broker restarts.")
                yield Record(topic, partition, offset, None, b"x", timestamp_ms=offset * 1_000)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> OneTopic:
    found = OneTopic()
    for module in ("penstock.ops.dead_letters", "penstock.dashboard.pages.records_page"):
        monkeypatch.setattr(f"{module}.require_bounds", lambda _cluster, tps: found.bounds(tps))
        monkeypatch.setattr(f"{module}.read_span", lambda _cluster, starts, ends: found.records(starts, ends))
    return found


def context_of(cluster: Any) -> DashboardContext:
    return DashboardContext(ClusterConnection(lambda: cast(Cluster, cluster)), allow_writes=False, note=pytest.fail)


def read(source: Any, *visible: str) -> Rows:
    published: list[Rows] = []
    source.read(published.append, frozenset(visible))
    return published[-1]


def test_a_read_of_dead_letters_that_failed_half_way_counts_none_twice(
    topic: OneTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_sources, "_AT_ONCE", 2)
    source = LettersSource(context_of(topic), "orders.dlq")
    topic.end, topic.fails_at = 10, 7
    with pytest.raises(ServerError):
        read(source)
    topic.fails_at = None
    rows = read(source)
    assert rows["topic"]["count"] == 10
    assert [row["count"] for key, row in rows.items() if key.startswith("reason")] == [10]
    topic.end = 12
    assert read(source)["topic"]["count"] == 12


def test_a_topic_that_was_created_again_is_counted_from_its_start(topic: OneTopic) -> None:
    source = LettersSource(context_of(topic), "orders.dlq")
    topic.end = 10
    assert read(source)["topic"]["count"] == 10
    topic.end = 3
    assert read(source)["topic"]["count"] == 3


def test_new_records_that_are_left_out_are_counted_once(topic: OneTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_page, "_TAILED", 5)
    source = NewRecordsSource(context_of(topic), {"topic": "orders"})
    assert read(source)["state"] == {"seen": 0, "skipped": 0}
    topic.end, topic.fails_at = 20, 18
    with pytest.raises(ServerError):
        read(source)
    topic.fails_at = None
    assert read(source)["state"] == {"seen": 5, "skipped": 15}


class Groups:
    """A cluster with groups, each with its lag."""

    brokers = "127.0.0.1:9092"

    def __init__(self) -> None:
        self.lags: dict[str, int] = {}

    def require_sight(self, _kind: str) -> None: ...

    def topics(self) -> dict[str, int]:
        return {}

    def listed(self) -> tuple[list[GroupListing], dict[str, str]]:
        return [GroupListing(name, "Classic", "Stable") for name in self.lags], {}

    def lag_of(self, names: Iterable[str]) -> dict[str, GroupLag | PenstockError]:
        return {name: _lag(name, self.lags[name]) for name in names}


def _lag(name: str, lag: int) -> GroupLag:
    group = GroupDescription(name, "Classic", "Stable", "range", "1", ())
    return GroupLag(group, (PartitionLag("orders", 0, committed=0, start=0, end=lag),))


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Groups:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    found = Groups()
    monkeypatch.setattr(overview_page, "all_groups", lambda _cluster: found.listed())
    monkeypatch.setattr(overview_page, "positions", lambda _cluster, names: found.lag_of(names))
    monkeypatch.setattr(overview_page, "survey", lambda _cluster, names, **_: found.lag_of(names))
    monkeypatch.setattr(overview_page, "dead_letter_topics", lambda _cluster: {})
    history = [LagPoint(0.0, 1)]
    monkeypatch.setattr(overview_page, "lag_history", lambda _cluster, names, **_: dict.fromkeys(names, history))
    return found


def test_a_group_that_was_deleted_leaves_nothing_behind(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview_page, "_FEW", 1)  # the figures of groups that nobody sees are read less often
    source = OverviewSource(context_of(groups))
    groups.lags = {"shop": 5, "other": 1}
    assert read(source, "shop")["shop"]["lag"] == 5
    groups.lags = {"other": 1, "third": 1}
    assert set(read(source)) == {"other", "third"}
    groups.lags = {"shop": 7, "other": 1}
    row = read(source)["shop"]
    assert row.get("lag") != 5, "these are the figures of the deleted group"
    assert row["trend"] == []


def test_failed_attempts_are_added_up_over_the_apps_of_a_group() -> None:
    def run(group: str, *counts: int, known: bool = True) -> SeenRun:
        registered = RegisteredRun(1, 1.0, "far", group, "local", (group,))
        handler = {"group": group, "name": "handle", "errors": [{"count": count} for count in counts]}
        return SeenRun(registered, is_here=False, picture={"handlers": [handler], "members": []} if known else None)

    runs = [run("shop", 2, 3), run("shop", 1), run("calm"), run("silent", known=False)]
    assert overview_page.errors_by_group(runs) == {"shop": 6, "calm": 0}


def test_the_trend_has_a_gap_for_the_time_when_nobody_saw_the_group(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview_page, "_FEW", 1)
    monkeypatch.setattr(overview_page, "_TREND_SECONDS", 0.0)
    source = OverviewSource(context_of(groups))
    groups.lags = {"shop": 5, "other": 1}
    assert read(source, "shop")["shop"]["trend"] == [1]
    read(source, "shop")
    assert read(source, "shop")["shop"]["trend"] == [1, 5]
    read(source, "other")
    read(source, "shop")
    assert read(source, "shop")["shop"]["trend"] == [1, 5, 5, None, 5]
    for _ in range(40):
        read(source, "other")
    assert read(source, "shop")["shop"]["trend"] == [1], "it is read from the log of commits again"
