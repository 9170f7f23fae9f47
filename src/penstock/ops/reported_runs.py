"""Runs on all machines: those of this one, and those that report to a compacted topic (``penstock run --report``)."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec
from confluent_kafka import KafkaException

from penstock.core.records.record import Record
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Logs
from penstock.kafka.client.clients import make_producer
from penstock.kafka.read.read_records import read_span
from penstock.ops.live_activity_file import LivePicture, look_at
from penstock.ops.runs import RegisteredRun, alive

REPORT_TOPIC = "penstock.runs"
_REPORT_SECONDS = 5.0
_FLUSH_SECONDS = 5.0
# A run that has not reported for this long has ended without saying so.
_SILENT_SECONDS = 20.0
_READ_SECONDS = 2.0
# Without the topic, nothing reports: look again after this time.
_LOOK_SECONDS = 10.0
# The topic is compacted, and each run has one record that counts. Older ones are behind so many.
_READ_BACK = 2_000
_TOPIC_CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(24 * 3600 * 1000),
    "segment.ms": str(3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}


@dataclass(frozen=True)
class SeenRun:
    """A run that the dashboard can see; ``picture`` is what it does now, None until it has said so."""

    run: RegisteredRun
    is_here: bool
    picture: dict[str, Any] | None

    @property
    def id(self) -> str:
        return f"{self.run.host}:{self.run.pid}"

    def looked_at(self) -> "SeenRun":
        """Return it with what it does now."""
        return replace(self, picture=look_at(self.run.pid, self.run.born)) if self.is_here else self


@dataclass
class RunReports:
    """Reads the topic, as far as it was not read before. Any thread may call it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _reached: int | None = None
    _next_read: float = 0.0
    _found: dict[str, tuple[float, RegisteredRun, dict[str, Any]]] = field(default_factory=dict)

    def read(self, cluster: Cluster) -> None:
        """Take the reports since the last call. A cluster that does not answer leaves what is known."""
        with self._lock, suppress(PenstockError):
            if time.monotonic() >= self._next_read:
                self._next_read = time.monotonic() + _READ_SECONDS
                self._read(cluster)

    def _read(self, cluster: Cluster) -> None:
        if self._reached is None and REPORT_TOPIC not in cluster.topics():
            self._next_read = time.monotonic() + _LOOK_SECONDS
            return
        tp = (REPORT_TOPIC, 0)
        bounds = Logs(cluster).bounds([tp])[tp]
        if isinstance(bounds, PenstockError):
            self._reached = None
            raise bounds
        known = self._reached
        if known is None or not bounds.start <= known <= bounds.end:
            known = max(bounds.start, bounds.end - _READ_BACK)
        for record in read_span(cluster, {tp: known}, {tp: bounds.end}):
            self._take(record)
        self._reached = bounds.end
        now = time.time()
        self._found = {key: each for key, each in self._found.items() if now - each[0] < _SILENT_SECONDS}

    def _take(self, record: Record) -> None:
        key = (record.key or b"").decode(errors="replace")
        if record.value is None:
            self._found.pop(key, None)
            return
        with suppress(msgspec.MsgspecError, ValueError, TypeError, KeyError):
            content = json.loads(record.value)
            run = msgspec.convert(content["run"], RegisteredRun)
            picture = content["picture"]
            if isinstance(picture["handlers"], list) and isinstance(picture["members"], list):
                self._found[key] = record.timestamp_ms / 1000, run, picture

    def seen(self, *, now: float) -> list[SeenRun]:
        with self._lock:
            return [
                SeenRun(run, is_here=False, picture=picture)
                for at, run, picture in self._found.values()
                if now - at < _SILENT_SECONDS
            ]


def seen_runs(reports: RunReports, cluster: Cluster | None, *, only: str | None = None) -> list[SeenRun]:
    """Return all runs that can be seen, or one by its id. Only that one has what it does now, if it is here."""
    here = [SeenRun(run, is_here=True, picture=None) for run in alive()]
    found = next((each.run for each in here if each.id == only), None)
    if found is not None:  # commands must not wait for a broker that does not answer
        return [SeenRun(found, is_here=True, picture=None).looked_at()]
    if only is not None:
        here = []
    if cluster is not None:
        reports.read(cluster)
    known = {each.id for each in here}
    far = [each for each in reports.seen(now=time.time()) if each.id not in known and only in {None, each.id}]
    return here + sorted(far, key=lambda each: (each.run.app, each.id))


@contextmanager
def reporting(picture: LivePicture, cluster: Cluster, warn: Callable[[str], None]) -> Iterator[None]:
    """Report to the topic for the block, every few seconds and at the end. A failure warns once; the run goes on."""
    ended = threading.Event()
    run = next(iter(alive(str(os.getpid()))), None)
    if run is None:  # its file could not be written, and ``registered`` has said so
        yield
        return
    thread = threading.Thread(target=_report, args=(run, picture, cluster, warn, ended), name="report", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(2 * _FLUSH_SECONDS)


def _report(
    run: RegisteredRun, picture: LivePicture, cluster: Cluster, warn: Callable[[str], None], ended: threading.Event
) -> None:
    key = f"{run.host}:{run.pid}:{run.born:.0f}".encode()
    try:
        cluster.create_topics([REPORT_TOPIC], partitions=1, config=_TOPIC_CONFIG)
        more = {"compression.type": "zstd"}
        producer = make_producer(cluster.brokers, settings=cluster.settings, proven=False, more=more)
        while True:
            content = {"run": asdict(run), "picture": picture.as_json()}
            producer.produce(REPORT_TOPIC, msgspec.json.encode(content), key=key)
            producer.poll(0)
            if ended.wait(_REPORT_SECONDS):
                break
        producer.produce(REPORT_TOPIC, None, key=key)
        producer.flush(_FLUSH_SECONDS)
    except (PenstockError, KafkaException, BufferError) as error:
        said = error.problem if isinstance(error, PenstockError) else str(error)
        warn(f"This run does not report to {REPORT_TOPIC} any more: {said}")
