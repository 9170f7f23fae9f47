"""All topics, and one of them: partitions, sizes, rates, skew, and its hot keys."""

import time
from collections.abc import Mapping
from typing import Any

from penstock.core.records.key_skew_rules import remedies
from penstock.core.text.readable_bytes import as_text
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.given_parameters import needed_text, whole_of
from penstock.dashboard.pages.lag_rows import rounded
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.ops.key_skew import survey_keys
from penstock.ops.topic_facts import PartitionFacts, TopicFacts, topic_facts

# Up to so many topics, all are read; of more, those on the screen.
_FEW = 100
_SAMPLE = 20_000
_MAX_SAMPLE = 1_000_000
_KEYS = 20


class TopicsSource:
    every = 5.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._facts: dict[str, Row] = {}

    def read(self, publish: Publish, visible: frozenset[str]) -> None:
        cluster = self._context.connection.cluster()
        topics = cluster.topics()
        if not topics:
            cluster.require_sight("topic")
        if not self._facts:
            publish(self._rows(topics))
        watched = [name for name in topics if len(topics) <= _FEW or name in visible]
        self._facts = {name: row for name, row in self._facts.items() if name in topics}
        for facts in topic_facts(cluster, watched, now=time.time()):
            self._facts[facts.name] = _figures(facts)
        publish(self._rows(topics))

    def close(self) -> None: ...

    def _rows(self, topics: Mapping[str, int]) -> Rows:
        return {
            name: {
                "name": name,
                "partitions": count,
                "internal": name.startswith("__"),
                **self._facts.get(name, {}),
            }
            for name, count in topics.items()
        }


class TopicSource:
    """Rows: ``topic``; ``partition N``."""

    every = 3.0

    def __init__(self, context: DashboardContext, name: str) -> None:
        self._context = context
        self._name = name

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - it reads all partitions
        cluster, now = self._context.connection.cluster(), time.time()
        cluster.require_topics([self._name])
        (facts,) = topic_facts(cluster, [self._name], now=now, ages=True)
        rows: Rows = {
            "topic": {
                "name": self._name,
                **_figures(facts),
                "replication": facts.replication,
                "margin": rounded(facts.margin(now)),
            }
        }
        for part in facts.partitions:
            rows[f"partition {part.partition}"] = _partition(part, now)
        publish(rows)

    def close(self) -> None: ...


def _figures(facts: TopicFacts) -> Row:
    return {
        "records": facts.max_records,
        "bytes": facts.bytes,
        "rate": rounded(facts.rate),
        "skew": rounded(facts.skew),
        "cleanup": facts.cleanup,
        "retention": facts.retention_seconds,
        "partitions": len(facts.partitions),
    }


def _partition(part: PartitionFacts, now: float) -> Row:
    return {
        "partition": part.partition,
        "leader": part.leader,
        "replicas": list(part.replicas),
        "in_sync": list(part.in_sync),
        "start": part.start,
        "end": part.end,
        "records": part.max_records,
        "rate": rounded(part.rate),
        "age": None if part.oldest is None else rounded(max(0.0, now - part.oldest)),
        "bytes": part.bytes,
        "error": part.error or None,
    }


def _topics(context: DashboardContext, _given: Mapping[str, str]) -> TopicsSource:
    return TopicsSource(context)


def _topic(context: DashboardContext, given: Mapping[str, str]) -> TopicSource:
    return TopicSource(context, needed_text(given, "name"))


def _keys(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Count the keys of about the last records."""
    sample = whole_of(given, "sample", most=_MAX_SAMPLE) or _SAMPLE
    survey = survey_keys(context.connection.cluster(), needed_text(given, "name"), sample=sample)
    if not survey.total:
        return {"total": 0, "keys": [], "remedies": []}
    return {
        "total": survey.total,
        "distinct": survey.distinct,
        "unkeyed": survey.unkeyed,
        "counts": survey.counts,
        "hot_from": survey.hot_from,
        "strays": len(survey.strays),
        "keys": [
            {
                "key": as_text(each.key, limit=120),
                "least": each.least,
                "most": each.most,
                "partitions": each.partitions[:20],
            }
            for each in survey.keys[:_KEYS]
        ],
        "remedies": [
            {"name": each.name, "why": each.why, "costs": each.costs} for each in remedies(survey) if each.fits
        ],
    }


PAGE = DashboardPage("topics", "Topics", icon="topics", sources={"topics": _topics}, has_style=True)
TOPIC_PAGE = DashboardPage(
    "topic", under="topics", sources={"topic": _topic}, endpoints=(Endpoint("keys", _keys),), has_style=True
)
