"""The counts that Spark makes while it runs a plan: records read and unreadable by source, and rows written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark.internals import Execution, observed_metrics, planned_metrics, reads_all_under
from penstock.spark.pipelines.read_sources import READ_METRIC

_ROWS = "penstock.rows"


@dataclass(frozen=True)
class Observed:
    """``read`` and ``unreadable`` records by source; sources that were not looked at are left out.

    ``places`` are topic, partition and offset of the first unreadable ones.
    """

    read: dict[str, int]
    unreadable: dict[str, int]
    rows: int
    tps: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)

    def knows_places(self, source: str) -> bool:
        return len(self.tps.get(source, ())) >= self.unreadable.get(source, 0)


def counted(rows: DataFrame, name: str = _ROWS) -> DataFrame:
    """The same rows, which are counted when they are made."""
    return rows.observe(name, F.count(F.lit(1)).alias("rows"))


def seen_by(execution: Execution, sources: Mapping[str, Sequence[str]]) -> Observed:
    """The counts of an execution whose job is over. ``sources`` has the topics of each source."""
    metrics = observed_metrics(execution, [_ROWS, *(f"{READ_METRIC}{name}" for name in sources)])
    found = {name: metrics[f"{READ_METRIC}{name}"] for name in sources if f"{READ_METRIC}{name}" in metrics}
    return Observed(
        read={name: metric["read"] for name, metric in found.items()},
        unreadable={name: metric["unreadable"] for name, metric in found.items()},
        rows=metrics[_ROWS]["rows"] if _ROWS in metrics else 0,
        tps={name: _tps(metric["places"], sources[name]) for name, metric in found.items()},
    )


def _tps(noted: Sequence[Mapping[str, Any]], topics: Sequence[str]) -> list[tuple[str, int, int]]:
    """Topics are noted by their number, as Spark counts: from 1 on."""
    # A task that Spark ran twice may have noted a place twice.
    return sorted({(topics[each["topic"] - 1], each["partition"], each["offset"]) for each in noted})


def reads_all(execution: Execution, source: str) -> bool:
    """Whether the plan, where it has run, has read this source to its end: nothing in it can stop before that."""
    return reads_all_under(execution, f"{READ_METRIC}{source}")


def sources_of(rows: DataFrame) -> set[str]:
    """Which sources these rows are made of: those whose counting is part of their plan."""
    return {name.removeprefix(READ_METRIC) for name in planned_metrics(rows) if name.startswith(READ_METRIC)}
