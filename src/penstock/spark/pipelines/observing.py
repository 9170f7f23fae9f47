"""What Spark counted while it ran a plan.

Spark's own way, ``Observation``, waits for ever where the rows go to Kafka. The plan that ran has the counts as well,
as soon as its job is over.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.pipelines.reading import READ_METRIC

_ROWS = "penstock.rows"


@dataclass(frozen=True)
class Seen:
    """``read`` and ``unreadable`` records by source; sources that were not looked at are left out."""

    read: dict[str, int]
    unreadable: dict[str, int]
    rows: int


def counted(rows: DataFrame) -> DataFrame:
    """The same rows, which are counted when they are made."""
    return rows.observe(_ROWS, F.count(F.lit(1)).alias("rows"))


def seen_by(execution: Any, sources: Iterable[str]) -> Seen:
    """The counts of a JVM ``QueryExecution``."""
    metrics = execution.observedMetrics()
    names = {name: f"{READ_METRIC}{name}" for name in sources}
    found = {name: metrics.apply(metric) for name, metric in names.items() if metrics.contains(metric)}
    rows = metrics.apply(_ROWS).getLong(0) if metrics.contains(_ROWS) else 0
    return Seen(
        read={name: int(row.getLong(0)) for name, row in found.items()},
        unreadable={name: int(row.getLong(1)) for name, row in found.items()},
        rows=int(rows),
    )


def execution_of(query: StreamingQuery) -> Any:
    """The plan of the batch that is running."""
    return query._jsq.streamingQuery().lastExecution()  # noqa: SLF001 - PySpark has no other way to it


def as_batch(rows: DataFrame) -> tuple[DataFrame, Any]:
    """These rows as a batch gets them, with the execution that will have their counts."""
    execution = rows._jdf.queryExecution()  # noqa: SLF001
    session = rows.sparkSession
    made = session._jsparkSession.internalCreateDataFrame(execution.toRdd(), rows._jdf.schema(), False)  # noqa: FBT003, SLF001
    return DataFrame(made, session), execution


def sources_of(rows: DataFrame) -> set[str]:
    """Which sources these rows are made of: those whose counting is part of their plan."""
    found, plans = set(), [rows._jdf.queryExecution().analyzed()]  # noqa: SLF001
    while plans:
        plan = plans.pop()
        if plan.getClass().getSimpleName() == "CollectMetrics" and plan.name().startswith(READ_METRIC):
            found.add(plan.name().removeprefix(READ_METRIC))
        children = plan.children()
        plans.extend(children.apply(number) for number in range(children.size()))
    return found
