"""One group: its members and partitions, one of its partitions, and its lag in the past."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from penstock.assign import Group, Member
from penstock.assign.member_labels import labels
from penstock.core.records.record import TopicPartition
from penstock.core.text.durations import seconds as parse_seconds
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.given_parameters import whole_of
from penstock.dashboard.pages.lag_rows import group_figures, partition_figures, rounded
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.errors import ConfigError, PenstockError, TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import GroupDescription
from penstock.kafka.admin.log_bounds import Bounds, Logs
from penstock.ops.group_lag import GroupLag, PartitionLag, offset_map_of, positions, survey
from penstock.ops.groups_of_any_kind import committed, describe, no_group
from penstock.ops.lag_history import lag_history
from penstock.ops.reported_runs import SeenRun
from penstock.ops.topic_facts import TopicFacts, topic_facts

_FACTS_SECONDS = 60.0
# Rates are measured over a minute: a group that is slower by less than this keeps up.
_NOISE = 0.05
# What is further away is no danger: the rates of a minute say nothing about it.
_FAR_SECONDS = 30 * 24 * 3600.0
_MAX_RANGES = 2_000
_MAX_PARTITION = 2**31 - 1
_POINTS = 72
_MAX_HISTORY_SECONDS = 7 * 24 * 3600.0


class GroupSource:
    """Rows: ``group``; ``partition TOPIC/NUMBER``; ``member ID``."""

    every = 2.0

    def __init__(self, context: DashboardContext, name: str) -> None:
        self._context = context
        self._name = name
        self._facts: dict[str, TopicFacts] = {}
        self._facts_at = 0.0
        self._has_read = False

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - it reads all partitions
        cluster = self._context.connection.cluster()
        if not self._has_read:  # positions are known sooner than rates
            publish(
                self._rows(_existing(positions(cluster, [self._name])[self._name], self._name, cluster), judged=False)
            )
            self._has_read = True
        found = _existing(survey(cluster, [self._name], now=time.time())[self._name], self._name, cluster)
        self._read_facts(cluster, {part.topic for part in found.partitions})
        publish(self._rows(found, judged=True))

    def close(self) -> None: ...

    def _read_facts(self, cluster: Cluster, topics: set[str]) -> None:
        now = time.time()
        if topics - self._facts.keys() or now - self._facts_at > _FACTS_SECONDS:
            existing = [topic for topic in sorted(topics) if topic in cluster.topics()]
            self._facts = {each.name: each for each in topic_facts(cluster, existing, now=now)}
            self._facts_at = now

    def _rows(self, found: GroupLag, *, judged: bool) -> Rows:
        group = found.group
        margins = [margin for part in found.partitions if (margin := self._margin(part)) is not None]
        rows: Rows = {
            "group": {
                "name": self._name,
                "assignor": group.assignor,
                "coordinator": group.coordinator,
                "simple": group.simple,
                "shared": group.is_shared,
                "margin": min(margins, default=None),
                **group_figures(found, judged=judged),
            }
        }
        for part in found.partitions:
            rows[f"partition {part.topic}/{part.partition}"] = partition_figures(part) | {"margin": self._margin(part)}
        names = _labels(group)
        for member in group.members:
            rows[f"member {member.id}"] = {
                "id": member.id,
                "client": member.client,
                "label": names[member.id],
                "host": member.host,
                "static_id": member.static_id,
                "rack": member.rack,
                "partitions": [list(tp) for tp in member.partitions],
                "target": [list(tp) for tp in member.target],
            }
        return rows

    def _margin(self, part: PartitionLag) -> float | None:
        facts = self._facts.get(part.topic)
        if facts is None or facts.retention_seconds is None or "delete" not in facts.cleanup:
            return None
        return rounded(retention_margin(part, facts.retention_seconds))


def _labels(group: GroupDescription) -> dict[str, str]:
    members = (Member(id=each.id, topics=(), static_id=each.static_id, client=each.client) for each in group.members)
    return labels(Group(tuple(members), {}))


def retention_margin(part: PartitionLag, retention: float) -> float | None:
    """Return the seconds until retention deletes unfinished records at the current rates; None if it will not.

    A group that finishes half of what is written falls back by half a second each second.
    """
    if not part.lag or part.lag_seconds is None or part.rate_out is None:
        return None
    falls_back = 1.0 if not part.rate_in else 1.0 - part.rate_out / part.rate_in
    if falls_back < _NOISE or (not part.rate_in and part.rate_out > 0):
        return None
    margin = max(0.0, retention - part.lag_seconds) / falls_back
    return margin if margin < _FAR_SECONDS else None


class PartitionSource:
    """One row, ``partition``: the bounds of the log, the commit point, and the finished ranges above it."""

    every = 1.0

    def __init__(self, context: DashboardContext, name: str, topic: str, partition: int) -> None:
        self._context = context
        self._name = name
        self._tp = topic, partition

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there is one row
        cluster = self._context.connection.cluster()
        bounds = Logs(cluster).bounds([self._tp])[self._tp]
        if isinstance(bounds, PenstockError):
            raise bounds
        publish({"partition": self._row(cluster, bounds)})

    def close(self) -> None: ...

    def _row(self, cluster: Cluster, bounds: Bounds) -> Row:
        found = committed(cluster, describe(cluster, [self._name]))[self._name]
        if isinstance(found, PenstockError):
            raise found
        commit = found.get(self._tp)
        ranges = [] if commit is None else offset_map_of(commit)
        return {
            "topic": self._tp[0],
            "partition": self._tp[1],
            "start": bounds.start,
            "end": bounds.end,
            "committed": None if commit is None else commit.offset,
            "ranges": [list(each) for each in ranges[:_MAX_RANGES]],
            "above": sum(end - start for start, end in ranges),
            "fetched": fetched_to(self._context.runs_of(self._name), self._name, self._tp),
            "metadata_bytes": 0 if commit is None else len(commit.metadata.encode()),
        }


def fetched_to(runs: Iterable[SeenRun], group: str, tp: TopicPartition) -> int | None:
    """Return how far the member that owns the partition has fetched; None if it does not say so."""
    members = (each for run in runs for each in (run.picture or {}).get("members", ()) if each["group"] == group)
    parts = (part for each in members for part in each["partitions"] if (part["topic"], part["partition"]) == tp)
    return max((part["position"] for part in parts if part["position"] is not None), default=None)


def _existing(found: GroupLag | PenstockError, name: str, cluster: Cluster) -> GroupLag:
    if isinstance(found, PenstockError):
        raise found
    if not found.group.exists:
        raise no_group(name, cluster, hint="The page Groups lists them.")
    return found


def _named(given: Mapping[str, Any]) -> str:
    name = given.get("name")
    if not name:
        raise ConfigError("The group has no name.", hint="Choose a group on the page Groups.")
    return str(name)


def _group(context: DashboardContext, given: Mapping[str, str]) -> GroupSource:
    return GroupSource(context, _named(given))


def _partition(context: DashboardContext, given: Mapping[str, str]) -> PartitionSource:
    topic, _, number = given.get("at", "").rpartition("/")
    if not topic or not number:
        raise TopicError(f"{given.get('at', '')!r} is not a partition.", hint="Write TOPIC/NUMBER, as in orders/3.")
    partition = whole_of({"partition": number}, "partition", most=_MAX_PARTITION)
    return PartitionSource(context, _named(given), topic, partition or 0)


def _history(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    name = _named(given)
    span = parse_seconds(str(given.get("window", "1h")), name="window")
    if not 0 < span <= _MAX_HISTORY_SECONDS:
        raise ConfigError("The window is too long, or nothing.", hint="Use at most 7d.")
    found = lag_history(context.connection.cluster(), [name], now=time.time(), seconds=span, points=_POINTS)
    return {"points": [asdict(each) for each in found.get(name, ())]}


PAGE = DashboardPage(
    "group",
    under="groups",
    sources={"group": _group, "partition": _partition},
    endpoints=(Endpoint("history", _history),),
    has_style=True,
)
