"""Writes records during a chaos run, and watches what the group commits."""

import random
import threading
import time
from types import TracebackType
from typing import Self

from chaos.history import TopicPartition
from penstock.kafka import Cluster, make_producer

_KEYS = 600
# The share of records that exists from the start, so that faults hit members with a backlog.
_AT_ONCE = 0.2
_CHUNK_SECONDS = 0.1
_LOOK_SECONDS = 0.25
_FLUSH_SECONDS = 240.0


class Background:
    """A thread that runs during a ``with`` block."""

    def __init__(self) -> None:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()


class Writer(Background):
    """Writes this many records evenly over this many seconds. It writes the last ones only after ``finish``."""

    def __init__(self, brokers: str, topic: str, *, records: int, seconds: float) -> None:
        super().__init__()
        self._producer = make_producer(brokers, settings={})
        self._topic = topic
        self._records = records
        self._seconds = seconds
        self.produced: dict[tuple[TopicPartition, int], str | None] = {}
        """What the broker has acknowledged."""
        self.done = False
        self._finish = threading.Event()

    def finish(self) -> None:
        """The faults are over. Records that are written later are handled after them."""
        self._finish.set()

    def _run(self) -> None:
        at_once = int(self._records * _AT_ONCE)
        chunks = max(1, int(self._seconds / _CHUNK_SECONDS))
        written = 0
        for chunk in range(chunks + 1):
            upto = at_once + (self._records - at_once) * chunk // chunks
            while chunk == chunks and not self._finish.wait(_CHUNK_SECONDS) and not self._ending.is_set():
                self._producer.poll(0)
            for number in range(written, upto):
                # A few keys get most of the records, as in real topics.
                key = f"key-{int(_KEYS * random.random() ** 2)}"
                self._producer.produce(self._topic, value=b"%d" % number, key=key, on_delivery=self._on_delivery)
            written = upto
            self._producer.poll(0)
            if self._ending.wait(_CHUNK_SECONDS):
                break
        if self._producer.flush(_FLUSH_SECONDS):
            raise TimeoutError("the broker did not acknowledge all records")
        self.done = True

    def _on_delivery(self, error: object, message: object) -> None:
        if error is None:
            self.produced[(message.topic(), message.partition()), message.offset()] = message.key().decode()  # type: ignore[attr-defined]


class Observer(Background):
    """Asks the broker repeatedly for the committed offsets of the group."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        super().__init__()
        self._cluster, self._group = cluster, group
        self._tps = cluster.topic_partitions([topic])
        self.seen: list[tuple[float, dict[TopicPartition, int]]] = []
        self.total = 0

    def committed(self) -> dict[TopicPartition, int]:
        return self._cluster.committed(self._group, self._tps)

    def ends(self) -> dict[TopicPartition, int]:
        return self._cluster.end_offsets(self._tps)

    def at_the_end(self) -> bool:
        return bool(self.seen) and self.total == sum(self.ends().values())

    def _run(self) -> None:
        while not self._ending.wait(_LOOK_SECONDS):
            committed = self.committed()
            self.seen.append((time.time(), committed))
            self.total = sum(committed.values())
