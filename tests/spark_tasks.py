"""Runs tasks of the Spark engine on records in memory, without Spark and without a broker."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from confluent_kafka import Message

from penstock import App, Retry
from penstock.app import Handler
from penstock.app.dispatching.running_concurrency import auto_concurrency
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.failures.pausing_circuit import circuit_of
from penstock.core.progress.slices import Reached, Slice
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.effects import Send
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.spark.tasks.outputs import Refusals
from penstock.spark.tasks.slice_task import SliceTask
from penstock.spark.tasks.workers import make_workers

Row = dict[str, Any]
TP: TopicPartition = ("orders", 2)
# More than any test needs; a real slice takes seconds.
_MOST_SLICES = 100


def source(
    *values: bytes | None,
    first: int = 0,
    key: bytes | None = b"k",
    keys: Sequence[bytes | None] | None = None,
    headers: Any = None,
) -> list[Message]:
    """Some records of orders[2], from this offset on."""
    chosen = [key] * len(values) if keys is None else keys
    return [
        Message(
            topic=TP[0], partition=TP[1], offset=first + number, key=chosen[number], value=value,
            headers=headers, timestamp=(1, 1_700_000_000_123), error=None,
        )
        for number, value in enumerate(values)
    ]  # fmt: skip


def declare(function: Callable[..., Any], **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", **{"retry": Retry(attempts=1), **options})(function)
    return app.handlers[0]


class MemoryReader:
    """Reads a slice from lists of records; each read returns records of one list."""

    def __init__(self, batches: Sequence[Sequence[Message]], each: Slice) -> None:
        self._batches = [list(batch) for batch in batches]
        self._end = each.end
        self.read_to = {each.tp: each.start}
        self.out_of_range: set[TopicPartition] = set()
        self.most = 0
        self._stopped = False

    @property
    def is_done(self) -> bool:
        return self._stopped or self.read_to[TP] >= self._end

    def read(self, limit: int, _seconds: float) -> list[tuple[TopicPartition, Sequence[Message]]]:
        at = self.read_to[TP]
        wanted = (
            [message for message in batch if at <= (message.offset() or 0) < self._end] for batch in self._batches
        )
        batch = next((found for found in wanted if found), [])[:limit]
        self.read_to[TP] = (batch[-1].offset() or 0) + 1 if batch else self._end
        return [(TP, batch)] if batch else []

    def stop(self, _tp: TopicPartition) -> None:
        self._stopped = True


class MemoryOutputs:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def write(self, _epoch: Epoch, _records: list[AnyRecord], outputs: list[ProducerRecord]) -> None:
        for out in outputs:
            headers = [{"key": name, "value": value} for name, value in out.headers] or None
            self.rows.append({"topic": out.topic, "key": out.key, "value": out.value, "headers": headers})

    def write_values(
        self, epoch: Epoch, topic: str, records: list[AnyRecord], keys: list[bytes | None], values: list[bytes]
    ) -> None:
        outputs = [ProducerRecord(topic, key, value) for key, value in zip(keys, values, strict=True)]
        self.write(epoch, records, outputs)

    def send(self, together: Sequence[Send]) -> None:
        for send in together:
            self.write(send.tried.epoch, [send.tried.record], [send.outgoing])

    def flush(self) -> Refusals:
        return []


class RealTask:
    """Runs slice after slice, as the driver does, until all records are finished. Raises what stops the handler."""

    def __init__(
        self,
        handler: Handler,
        *batches: Sequence[Message],
        seconds: float = 600.0,
        outputs: MemoryOutputs | None = None,
    ) -> None:
        self.counts = Counts()
        self.route_counts: dict[str, Counts] = {}
        self.slept: list[float] = []
        self.events: list[Event] = []
        self.slices: list[Reached] = []
        self._outputs = outputs or MemoryOutputs()
        self.rows = self._outputs.rows
        circuit = circuit_of(handler.breaker)
        self.auto = auto_concurrency(handler)
        offsets = [message.offset() or 0 for batch in batches for message in batch]
        assert all(one < other for one, other in pairwise(offsets))
        begin, end = (offsets[0], offsets[-1] + 1) if offsets else (0, 0)
        at = Reached(begin, "", begin)
        for _ in range(_MOST_SLICES):
            each = Slice(TP, at.position, end, at.metadata, 1, seconds, at.waiting)
            task = SliceTask(
                handler,
                [each],
                MemoryReader(batches, each),  # type: ignore[arg-type]
                self._outputs,
                partial(make_workers, handler, self.sleep),
                circuit=circuit,
                auto=self.auto,
                clock=self.clock,
                wall_clock=self.clock,
            )
            task.run()
            self.counts += task.counts
            for name, found in task.route_counts.items():
                self.route_counts[name] = self.route_counts.get(name, Counts()) + found
            self.events += task.events
            at = task.reached(TP)
            self.slices.append(at)
            if task.halted is not None:
                raise task.halted
            if at.position >= end:
                return
            due = min((each.due for each in at.waiting.values()), default=0.0)
            if at.again_at > self.clock():
                self.sleep(at.again_at - self.clock())
            elif at.read_to >= end and due > self.clock():
                self.sleep(due - self.clock())
        raise AssertionError("the records are not finished")

    def clock(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Task(RealTask):
    """Runs the same with a clock that moves only while the task sleeps, and remembers how long it slept."""

    _now = 0.0

    def clock(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        self.slept.append(seconds)
