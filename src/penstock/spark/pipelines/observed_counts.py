"""The counts that Spark makes while it runs a plan: records read and unreadable by source, and rows written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Source
from penstock.spark.internals import Execution, observed_metrics, planned_metrics, reads_all_under
from penstock.spark.pipelines.read_sources import READ_METRIC

_ROWS = "penstock.rows"


@dataclass(frozen=True)
class Observed:
    """Records ``read`` and ``unreadable`` by source, without sources that Spark did not read, and ``rows`` written.

    ``positions`` has topic, partition and offset of the first unreadable records of each source. ``unmet`` has the rows
    that did not meet each expectation; ``dropped`` those that were dropped for that. A record that is dead-lettered
    because of an expectation counts as unreadable.
    """

    read: dict[str, int]
    unreadable: dict[str, int]
    rows: int
    positions: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    dropped: int = 0
    unmet: dict[str, int] = field(default_factory=dict)

    def has_all_positions(self, source: str) -> bool:
        return len(self.positions.get(source, ())) >= self.unreadable.get(source, 0)


def counted(rows: DataFrame, name: str = _ROWS) -> DataFrame:
    """Return the same rows. Spark counts them when it makes them."""
    return rows.observe(name, F.count(F.lit(1)).alias("rows"))


def read_counts(execution: Execution, sources: Mapping[str, Source]) -> Observed:
    """Return the counts of an execution whose job is over."""
    metrics = observed_metrics(execution, [_ROWS, *(f"{READ_METRIC}{name}" for name in sources)])
    found = {name: metrics[f"{READ_METRIC}{name}"] for name in sources if f"{READ_METRIC}{name}" in metrics}
    return Observed(
        read={name: metric["read"] for name, metric in found.items()},
        unreadable={name: metric["unreadable"] for name, metric in found.items()},
        rows=metrics[_ROWS]["rows"] if _ROWS in metrics else 0,
        positions={name: _positions(metric["positions"], sources[name].topics) for name, metric in found.items()},
        dropped=sum(metric.get("dropped", 0) for metric in found.values()),
        unmet=_unmet(found, sources),
    )


def _unmet(found: Mapping[str, Mapping[str, Any]], sources: Mapping[str, Source]) -> dict[str, int]:
    """Return how many rows did not meet each expectation; the sum where two sources have the same one."""
    counts: Counter[str] = Counter()
    for name, metric in found.items():
        counts.update({text: metric[f"unmet{number}"] for number, text in enumerate(sources[name].expect)})
    return {text: count for text, count in counts.items() if count}


def _positions(noted: Sequence[Mapping[str, Any]], topics: Sequence[str]) -> list[tuple[str, int, int]]:
    """The plan notes a topic by its number, from 1 on (``read_sources.py``)."""
    # A task that Spark ran twice may have noted a record twice.
    return sorted({(topics[each["topic"] - 1], each["partition"], each["offset"]) for each in noted})


def reads_all(execution: Execution, source: str) -> bool:
    """Whether the finished execution has read all records of this source. A limit, for example, stops earlier."""
    return reads_all_under(execution, f"{READ_METRIC}{source}")


def sources_of(rows: DataFrame) -> set[str]:
    """Return the sources of these rows: those that are counted in their plan."""
    return {name.removeprefix(READ_METRIC) for name in planned_metrics(rows) if name.startswith(READ_METRIC)}
