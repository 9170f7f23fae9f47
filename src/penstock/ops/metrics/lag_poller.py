"""Measures the lag of this process every few seconds on its own thread, so that scrapes make no Kafka requests."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from penstock.core.progress.end_history import EndHistory
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Bounds, Logs
from penstock.kafka.read.consumer_offsets import times_at
from penstock.ops.group_lag import PartitionLag
from penstock.ops.metrics.event_counters import GroupPartition
from penstock.ops.metrics.recommendations import Recommendations

LOOK_SECONDS = 10.0
# How often it checks for partitions while there are none.
_IDLE_SECONDS = 0.5
_CLOSE_SECONDS = 1.0
# Records written before the first measurement must be read to get their timestamps: at most so many per measurement.
_MOST_READ = 100

Lags = dict[GroupPartition, PartitionLag]


class LagPoller:
    """``positions`` returns the commits. If brokers do not answer, ``lags`` keeps its values and ``age`` grows."""

    def __init__(
        self,
        make_cluster: Callable[[], Cluster],
        positions: Callable[[], dict[GroupPartition, int]],
        recommendations: Recommendations | None = None,
    ) -> None:
        self.recommendations = recommendations
        self._make_cluster = make_cluster
        self._positions = positions
        self._histories: dict[TopicPartition, EndHistory] = {}
        self._read: dict[tuple[str, int, int], float] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lag", daemon=True)
        self._looked: float | None = None
        self.cluster_name = ""
        self.lags: Lags = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._closing.set()
        # Do not wait longer: the thread may be waiting for a broker that does not answer.
        self._thread.join(_CLOSE_SECONDS)

    @property
    def age(self) -> float | None:
        return None if self._looked is None else time.monotonic() - self._looked

    def _watch(self) -> None:
        cluster: Cluster | None = None
        while not self._closing.is_set():
            positions = self._positions()
            if positions:
                try:
                    cluster = cluster or self._make_cluster()
                    self.cluster_name = self.cluster_name or cluster.id()
                    self._look(cluster, positions)
                    if self.recommendations is not None:
                        self.recommendations.look(self.lags, cluster.topics(), time.monotonic())
                except PenstockError:
                    pass  # the engine reports brokers that do not answer
            self._closing.wait(LOOK_SECONDS if positions else _IDLE_SECONDS)

    def _look(self, cluster: Cluster, positions: dict[GroupPartition, int]) -> None:
        tps = {(topic, partition) for _, topic, partition in positions}
        bounds = {tp: each for tp, each in Logs(cluster).bounds(tps).items() if isinstance(each, Bounds)}
        now = time.time()
        self._histories = {tp: self._histories.get(tp, EndHistory()) for tp in tps}
        for tp, each in bounds.items():
            self._histories[tp].note(now, each.end)
        lags = {
            group_partition: PartitionLag(
                *group_partition[1:],
                committed=offset,
                start=bounds[group_partition[1:]].start,
                end=bounds[group_partition[1:]].end,
            )
            for group_partition, offset in positions.items()
            if group_partition[1:] in bounds
        }
        self._read_times(cluster, lags)
        before = {group_partition: lag for group_partition, lag in self.lags.items() if group_partition in positions}
        self.lags = before | {group_partition: self._timed(lag, now) for group_partition, lag in lags.items()}
        if len(bounds) == len(tps):
            self._looked = time.monotonic()

    def _read_times(self, cluster: Cluster, lags: Lags) -> None:
        """Read the timestamps of waiting records that were written before the first measurement."""
        older = {_next(lag) for lag in lags.values() if lag.lag and self._seen(lag) is None}
        unread = sorted(older - self._read.keys())[:_MOST_READ]
        self._read = {
            group_partition: at for group_partition, at in self._read.items() if group_partition in older
        } | times_at(cluster, unread)

    def _seen(self, lag: PartitionLag) -> float | None:
        return self._histories[lag.tp].written_at(_next(lag)[2])

    def _timed(self, lag: PartitionLag, now: float) -> PartitionLag:
        if not lag.lag:
            return replace(lag, lag_seconds=0.0)
        written = self._seen(lag) or self._read.get(_next(lag))
        return lag if written is None else replace(lag, lag_seconds=max(0.0, now - written))


def _next(lag: PartitionLag) -> tuple[str, int, int]:
    """Return topic, partition and offset of the first record that is not committed and still in the log."""
    return lag.topic, lag.partition, max(lag.committed or 0, lag.start or 0)
