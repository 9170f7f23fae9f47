"""Reports a run to dashboards on other machines: what it does, and the rebalances of its members."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Literal, Protocol

import msgspec
from confluent_kafka import KafkaException, Producer

from penstock.core.reports.events import Event, Rebalanced
from penstock.core.reports.report_size import fitted
from penstock.core.settings import redacted_values
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import make_producer
from penstock.ops.report_topics import REBALANCES_TOPIC, RUNS_TOPIC, TOPIC_CONFIGS
from penstock.ops.runs import RegisteredRun, alive

_REPORT_SECONDS = 5.0
_FLUSH_SECONDS = 5.0
# By default, clients and brokers take records of about a megabyte.
_MOST_BYTES = 500_000
_KEPT_REBALANCES = 50


class Picture(Protocol):
    """What a run says about itself: ``LivePicture`` of the local engine, ``SparkPicture`` of a run on Spark."""

    @property
    def name(self) -> Literal["picture", "spark"]: ...

    def as_json(self) -> dict[str, Any]: ...


class _Reporter:
    """Writes reports on a thread of its own. ``_lock`` guards the rebalances."""

    def __init__(self, run: RegisteredRun, picture: Picture, cluster: Cluster, warn: Callable[[str], None]) -> None:
        self._run = run
        self._key = f"{run.host}:{run.pid}:{run.born:.0f}".encode()
        self._picture = picture
        self._cluster = cluster
        self._warn = warn
        self._lock = threading.Lock()
        self._rebalances: deque[dict[str, Any]] = deque(maxlen=_KEPT_REBALANCES)
        self._is_new = False
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._report, name="report", daemon=True)

    def on_event(self, event: Event) -> None:
        if isinstance(event, Rebalanced):
            found = redacted_values(msgspec.to_builtins(event, enc_hook=str))
            with self._lock:
                self._rebalances.append(found)
                self._is_new = True

    def end(self) -> None:
        self._ended.set()

    def _report(self) -> None:
        try:
            for topic, config in TOPIC_CONFIGS.items():
                self._cluster.create_topics([topic], partitions=1, config=config)
            more = {"compression.type": "zstd"}
            producer = make_producer(self._cluster.brokers, settings=self._cluster.settings, proven=False, more=more)
            while True:
                self._write(producer)
                if self._ended.wait(_REPORT_SECONDS):
                    break
            self._write_rebalances(producer)  # the last ones, when its members left
            producer.produce(RUNS_TOPIC, None, key=self._key)
            producer.flush(_FLUSH_SECONDS)
        except (PenstockError, KafkaException, BufferError, ValueError) as error:  # ValueError: half a character
            said = error.problem if isinstance(error, PenstockError) else str(error)
            self._warn(f"This run does not report to {RUNS_TOPIC} any more: {said}")

    def _write(self, producer: Producer) -> None:
        content = {"run": asdict(self._run), self._picture.name: self._picture.as_json()}
        found = fitted(content, limit=_MOST_BYTES, size=_size)
        if found is not None:
            producer.produce(RUNS_TOPIC, msgspec.json.encode(found), key=self._key)
        self._write_rebalances(producer)
        producer.poll(0)

    def _write_rebalances(self, producer: Producer) -> None:
        with self._lock:
            if not self._is_new:
                return
            self._is_new, kept = False, latest_that_fit(list(self._rebalances), _MOST_BYTES)
        content = {"run": asdict(self._run), "rebalances": kept}
        producer.produce(REBALANCES_TOPIC, msgspec.json.encode(content), key=self._key)


def latest_that_fit(rebalances: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return the latest ones, oldest first. One that does not fit is left out: its parts would mean something else."""
    found: list[dict[str, Any]] = []
    for each in reversed(rebalances):
        needed = _size(each)
        if needed <= limit:
            found.append(each)
            limit -= needed
    return found[::-1]


def _size(content: Any) -> int:
    return len(msgspec.json.encode(content))


@contextmanager
def reporting(
    picture: Picture, cluster: Cluster, warn: Callable[[str], None]
) -> Iterator[Callable[[Event], None] | None]:
    """Report for the block, every few seconds and at the end. Yields a listener for the run's events.

    A failure warns once; the run goes on.
    """
    run = next(iter(alive(str(os.getpid()))), None)
    if run is None:  # its file could not be written, and ``registered`` has said so
        yield None
        return
    reporter = _Reporter(run, picture, cluster, warn)
    reporter.thread.start()
    try:
        yield reporter.on_event
    finally:
        reporter.end()
        reporter.thread.join(2 * _FLUSH_SECONDS)
