"""The topics in which runs report to dashboards on other machines (``penstock run --report``)."""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from penstock.core.records.record import Record
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Logs
from penstock.kafka.read.read_records import read_span

RUNS_TOPIC = "penstock.runs"
REBALANCES_TOPIC = "penstock.rebalances"
_DAY_MS = 24 * 3600 * 1000
_COMPACTED = {
    "cleanup.policy": "compact,delete",
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}
# A rebalance is kept as long as in the files of a machine.
TOPIC_CONFIGS = {
    RUNS_TOPIC: _COMPACTED | {"retention.ms": str(_DAY_MS)},
    REBALANCES_TOPIC: _COMPACTED | {"retention.ms": str(7 * _DAY_MS)},
}
_READ_SECONDS = 2.0
# Without the topic, nothing reports: look again after this time.
_LOOK_SECONDS = 10.0


class ReportTopicReader:
    """Reads a topic of one partition, as far as it was not read before. Any thread may call it.

    The topic is compacted, and each run has one record that counts. At first, up to ``read_back`` records are read.
    """

    def __init__(self, topic: str, take: Callable[[Record], None], *, read_back: int) -> None:
        self._topic = topic
        self._take = take
        self._read_back = read_back
        self._reached: int | None = None
        self._next_read = 0.0
        self.lock = threading.Lock()
        """``take`` is called with it."""

    def read(self, cluster: Cluster) -> None:
        """Take the records since the last call. A cluster that does not answer leaves what is known."""
        with self.lock, suppress(PenstockError):
            if time.monotonic() >= self._next_read:
                self._next_read = time.monotonic() + _READ_SECONDS
                for record in self._new_records(cluster):
                    self._take(record)

    def _new_records(self, cluster: Cluster) -> Iterable[Record]:
        if self._reached is None and self._topic not in cluster.topics():
            self._next_read = time.monotonic() + _LOOK_SECONDS
            return
        tp = (self._topic, 0)
        bounds = Logs(cluster).bounds([tp])[tp]
        if isinstance(bounds, PenstockError):
            self._reached = None
            raise bounds
        known = self._reached
        if known is None or not bounds.start <= known <= bounds.end:
            known = max(bounds.start, bounds.end - self._read_back)
        yield from read_span(cluster, {tp: known}, {tp: bounds.end})
        self._reached = bounds.end
