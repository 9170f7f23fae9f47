"""What Spark counted while it ran a plan.

Spark's own way, ``Observation``, waits for ever where the rows go to Kafka. The plan that ran has the counts as well,
as soon as its job is over.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.pipelines.read_sources import READ_METRIC

_ROWS = "penstock.rows"

# Steps of a plan whose tasks ask for all of their input. Limits do not, and some joins.
_SHUFFLES = frozenset({"BroadcastExchange", "BroadcastQueryStage", "ShuffleExchange", "ShuffleQueryStage"})
_READ_ALL = frozenset(
    {
        "AdaptiveSparkPlan",
        "ArrowEvalPython",
        "BatchEvalPython",
        "BroadcastHashJoin",
        "CollectMetrics",
        "DeserializeToObject",
        "EventTimeWatermark",
        "Expand",
        "Filter",
        "Generate",
        "HashAggregate",
        "InputAdapter",
        "MapElements",
        "MapInArrow",
        "MapInPandas",
        "MapPartitions",
        "ObjectHashAggregate",
        "Project",
        "ReusedExchange",
        "SerializeFromObject",
        "Sort",
        "SortAggregate",
        "StateStoreRestore",
        "StateStoreSave",
        "StreamingDeduplicate",
        "StreamingDeduplicateWithinWatermark",
        "TableCacheQueryStage",
        "Union",
        "UpdateEventTimeColumn",
        "WholeStageCodegen",
        "Window",
    }
)


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


def seen_by(execution: Any, sources: Mapping[str, Sequence[str]]) -> Observed:
    """The counts of a JVM ``QueryExecution``, for sources with these topics."""
    metrics = execution.observedMetrics()
    names = {name: f"{READ_METRIC}{name}" for name in sources}
    found = {name: metrics.apply(metric) for name, metric in names.items() if metrics.contains(metric)}
    rows = metrics.apply(_ROWS).getLong(0) if metrics.contains(_ROWS) else 0
    return Observed(
        read={name: int(row.getLong(0)) for name, row in found.items()},
        unreadable={name: int(row.getLong(1)) for name, row in found.items()},
        rows=int(rows),
        tps={name: _tps(row, sources[name]) for name, row in found.items()},
    )


def _tps(metrics: Any, topics: Sequence[str]) -> list[tuple[str, int, int]]:
    """Topics are noted by their number, as Spark counts: from 1 on."""
    noted = json.loads(metrics.json())["places"]
    # A task that Spark ran twice may have noted a place twice.
    return sorted({(topics[each["topic"] - 1], each["partition"], each["offset"]) for each in noted})


def reads_all(execution: Any, source: str) -> bool:
    """Whether the plan, where it has run, has read this source to its end: nothing in it can stop before that."""
    found, plans = [], [(execution.executedPlan(), True)]
    while plans:
        plan, is_whole = plans.pop()
        kind = _kind(plan)
        if kind == "CollectMetrics" and plan.name() == f"{READ_METRIC}{source}":
            found.append(is_whole)
        # What is shuffled or broadcast is read to its end, whatever the steps after that do with it.
        is_whole = kind in _SHUFFLES or (is_whole and kind in _READ_ALL)
        plans.extend((each, is_whole) for each in _children(plan, kind))
    return bool(found) and all(found)


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName()).removesuffix("Exec")


def _children(plan: Any, kind: str) -> list[Any]:
    """Also of those plans that Spark takes for leaves."""
    if kind == "AdaptiveSparkPlan":
        return [plan.executedPlan()]
    if kind.endswith("QueryStage"):
        return [plan.plan()]
    if kind == "ReusedExchange":
        return [plan.child()]
    children = plan.children()
    return [children.apply(number) for number in range(children.size())]


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
