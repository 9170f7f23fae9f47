"""The local engine against bare client loops, in one run on one machine: python benchmarks/local_engine.py.

Throughput: a handler that does nothing, on records of 100 bytes with 1,000 keys in 4 partitions.
Parallelism: a handler that waits, on one partition, against what so many at once could do at best.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from uuid import uuid4

import typer
from confluent_kafka import Consumer
from rich.console import Console
from rich.table import Table

from penstock import App, Record
from penstock import engine as local
from penstock.core.events import Assigned, Event, Stopping
from penstock.devkit import Embedded, UpOptions, embedded_brokers
from penstock.kafka import CONSUMER_DEFAULTS, Cluster, make_producer

KEYS = [b"key-%d" % number for number in range(1_000)]


class Stopwatch:
    """From the assignment of partitions to the last record."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Assigned) and not self.began:
            self.began = time.perf_counter()
        if isinstance(event, Stopping):
            self.ended = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def fill(brokers: str, topic: str, records: int, partitions: int) -> None:
    Cluster(brokers).create_topics([topic], partitions=partitions)
    producer = make_producer(brokers, settings={"linger.ms": 50})
    value = b"x" * 100
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value=value, key=KEYS[number % 1_000], partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush(60)


def bare_consumer(brokers: str, topic: str, settings: Mapping[str, Any]) -> Consumer:
    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": uuid4().hex, "auto.offset.reset": "earliest",
         "enable.auto.commit": False, **settings}
    )  # fmt: skip
    assigned = threading.Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())
    while not assigned.is_set():
        consumer.poll(0)
    return consumer


def bare_poll(brokers: str, topic: str, records: int, settings: Mapping[str, Any]) -> float:
    consumer = bare_consumer(brokers, topic, settings)
    began, seen = time.perf_counter(), 0
    while seen < records:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            _ = message.value(), message.key(), message.offset()
            seen += 1
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


def bare_consume(brokers: str, topic: str, records: int, settings: Mapping[str, Any]) -> float:
    consumer = bare_consumer(brokers, topic, settings)
    began, seen = time.perf_counter(), 0
    while seen < records:
        for message in consumer.consume(1_000, 1.0):
            if message.error() is None:
                _ = message.value(), message.key(), message.offset()
                seen += 1
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


def penstock(brokers: str, topic: str, handler: Callable[..., Any], **options: Any) -> float:
    app = App(uuid4().hex)
    app.consume(topic, **options)(handler)
    watch = Stopwatch()
    local.run(app, brokers=brokers, emit=watch, stop=threading.Event(), until_caught_up=True)
    return watch.seconds


def nothing(record: Record) -> None:
    pass


def nothing_with_any(records: list[Record]) -> None:
    pass


def compute(record: Record) -> None:
    """About ten milliseconds of one core."""
    total = 0
    for number in range(150_000):
        total += number


class Busy:
    """From the first call of a handler to the end of the last."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def wait_10_ms(self, record: Record) -> None:
        self.began = self.began or time.perf_counter()
        time.sleep(0.01)
        self.ended = time.perf_counter()

    async def wait_50_ms(self, record: Record) -> None:
        self.began = self.began or time.perf_counter()
        await asyncio.sleep(0.05)
        self.ended = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def main(
    records: int = 1_000_000,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    kafka = None
    brokers = brokers or embedded_brokers()
    if brokers is None:
        kafka = Embedded()
        brokers = str(kafka.up(UpOptions(port=0)).bootstrap)
    try:
        results = measure(brokers, records)
    finally:
        if kafka is not None:
            kafka.down()
    if as_json:
        print(json.dumps(results, indent=2))
        return
    table = Table("what", "seconds", "records/s", "ratio", title=f"{records:,} records")
    for row in results:
        table.add_row(row["what"], f"{row['seconds']:.2f}", f"{row['records'] / row['seconds']:,.0f}", row["ratio"])
    Console().print(table)


def measure(brokers: str, records: int) -> list[dict[str, Any]]:
    topic, narrow, wide, few = (f"bench-{uuid4().hex[:8]}" for _ in range(4))
    fill(brokers, topic, records, 4)
    fill(brokers, narrow, 10_000, 1)
    fill(brokers, wide, 40_000, 1)
    fill(brokers, few, 1_000, 1)
    try:
        poll, consume = bare_poll(brokers, topic, records, {}), bare_consume(brokers, topic, records, {})
        ours_poll = bare_poll(brokers, topic, records, CONSUMER_DEFAULTS)
        ours_consume = bare_consume(brokers, topic, records, CONSUMER_DEFAULTS)
        rows = [
            ("bare poll() loop", poll, "1.00"),
            ("bare consume(1000) loop", consume, f"{poll / consume:.2f} x poll"),
            ("bare poll() loop, penstock's client settings", ours_poll, f"{poll / ours_poll:.2f} x poll"),
            ("bare consume(1000) loop, penstock's settings", ours_consume, f"{poll / ours_consume:.2f} x poll"),
        ]
        for order in ("partition", "key", "none"):
            seconds = penstock(brokers, topic, nothing, order=order, concurrency=8)
            rows.append((f"penstock, no-op, order={order}", seconds, f"{poll / seconds:.2f} x poll"))
        seconds = penstock(brokers, topic, nothing_with_any, batch=1_000, concurrency=8)
        ratios = f"{consume / seconds:.2f} x consume, {ours_consume / seconds:.2f} x with its settings"
        rows.append(("penstock, no-op, batch=1000", seconds, ratios))
        results = [{"what": what, "seconds": s, "records": records, "ratio": ratio} for what, s, ratio in rows]
        for order in ("key", "none"):
            busy = Busy()
            penstock(brokers, narrow, busy.wait_10_ms, order=order, concurrency=100)
            results.append({"what": f"10 ms on 100 threads, order={order}", "seconds": busy.seconds, "records": 10_000,
                            "ratio": f"{1.0 / busy.seconds:.0%} of ideal"})  # fmt: skip
        busy = Busy()
        penstock(brokers, wide, busy.wait_50_ms, order="none", concurrency=1_000)
        results.append({"what": "50 ms, async, 1,000 at once", "seconds": busy.seconds, "records": 40_000,
                        "ratio": f"{2.0 / busy.seconds:.0%} of ideal"})  # fmt: skip
        one, two = (
            penstock(brokers, few, compute, workers="process", order="none", concurrency=processes)
            for processes in (1, 2)
        )
        for seconds, what in ((one, "10 ms of computing, one process"), (two, "10 ms of computing, two processes")):
            results.append({"what": what, "seconds": seconds, "records": 1_000, "ratio": f"{one / seconds:.2f} x one"})
    finally:
        Cluster(brokers).delete_topics([topic, narrow, wide, few])
    return results


if __name__ == "__main__":
    typer.run(main)
