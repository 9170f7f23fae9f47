"""Reports the lag of a query after its batches."""

from collections.abc import Callable

from penstock.core.reports.events import Event, Lagging
from penstock.errors import PenstockError
from penstock.kafka import Cluster
from penstock.spark.pipelines.resume_offsets import Offsets


def ends_of(cluster: Cluster, reached: Offsets) -> Offsets | None:
    """Return the end offsets of these partitions; None if Kafka does not answer. The next batch asks again."""
    try:
        return cluster.end_offsets(reached)
    except PenstockError:
        return None


def report_lag(group: str, reached: Offsets, ends: Offsets | None, emit: Callable[[Event], None]) -> int | None:
    """Emit an event for each partition. Returns the sum; None if the end offsets are unknown."""
    if ends is None:
        return None
    lags = {tp: max(0, ends[tp] - offset) for tp, offset in reached.items() if tp in ends}
    for (topic, partition), lag in lags.items():
        offset = reached[topic, partition]
        emit(Lagging(group=group, topic=topic, partition=partition, offset=offset, lag=lag))
    return sum(lags.values())
