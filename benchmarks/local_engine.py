"""The local engine against bare client loops, in one run on one machine: python benchmarks/local_engine.py.

Throughput: a handler that does nothing, on records of 100 bytes with 1,000 keys in 4 partitions.
Parallelism: a handler that waits, on one partition, against what so many at once could do at best, and against
threads that do nothing else. What ran while the machine was busy with others is run again (benchmarks/calm.py).
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from queue import Empty, SimpleQueue
from statistics import median
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill, show
from calm import Calm
from confluent_kafka import Consumer

from penstock import App, Record
from penstock import engine as local
from penstock.core.reports.events import Assigned, Event, Stopping
from penstock.kafka import CONSUMER_DEFAULTS, Cluster


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
    rounds: int = 5,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    calm = Calm()
    with broker(brokers) as address:
        results = measure(address, records, rounds, calm)
    title = f"{records:,} records, medians of {rounds} rounds"
    show(results, title=title, as_json=as_json, caption=str(calm))


def measure(brokers: str, records: int, rounds: int, calm: Calm) -> list[dict[str, Any]]:
    topic, narrow, wide, few = (f"bench-{uuid4().hex[:8]}" for _ in range(4))
    fill(brokers, topic, records, 4)
    fill(brokers, narrow, 10_000, 1)
    fill(brokers, wide, 40_000, 1)
    fill(brokers, few, 1_000, 1)
    try:
        return [
            *throughput(brokers, topic, records, rounds, calm),
            *parallelism(brokers, narrow, wide, rounds, calm),
            *computing(brokers, few, rounds, calm),
        ]
    finally:
        Cluster(brokers).delete_topics([topic, narrow, wide, few])


def throughput(brokers: str, topic: str, records: int, rounds: int, calm: Calm) -> list[dict[str, Any]]:
    """Each in turn, several times: this machine is not as fast in one minute as in the next, so a median counts."""
    poll, consume, penstocks = (
        "bare poll() loop",
        "bare consume(1000) loop",
        "bare consume(1000) loop, penstock's settings",
    )
    programs: dict[str, Callable[[], float]] = {
        poll: lambda: bare_poll(brokers, topic, records, {}),
        consume: lambda: bare_consume(brokers, topic, records, {}),
        "bare poll() loop, penstock's client settings": lambda: bare_poll(brokers, topic, records, CONSUMER_DEFAULTS),
        penstocks: lambda: bare_consume(brokers, topic, records, CONSUMER_DEFAULTS),
        "penstock, no-op, order=partition": lambda: penstock(brokers, topic, nothing, order="partition", concurrency=8),
        "penstock, no-op, order=key": lambda: penstock(brokers, topic, nothing, order="key", concurrency=8),
        "penstock, no-op, order=none": lambda: penstock(brokers, topic, nothing, order="none", concurrency=8),
        "penstock, no-op, batch=1000": lambda: penstock(brokers, topic, nothing_with_any, batch=1_000, concurrency=8),
    }
    seen: dict[str, list[float]] = {what: [] for what in programs}
    for _ in range(rounds):
        for what, program in programs.items():
            seen[what].append(calm(what, program))
    typical = {what: median(seconds) for what, seconds in seen.items()}
    ratios = {what: f"{typical[poll] / seconds:.2f} x poll" for what, seconds in typical.items()}
    batch = typical["penstock, no-op, batch=1000"]
    ratios["penstock, no-op, batch=1000"] = (
        f"{typical[consume] / batch:.2f} x consume, {typical[penstocks] / batch:.2f} x with its settings"
    )
    return [
        {"what": what, "seconds": typical[what], "all": seen[what], "records": records, "ratio": ratios[what]}
        for what in programs
    ]


def threads_alone(records: int, threads: int, seconds: float) -> float:
    """The same waits by nothing but threads and a queue: what this machine can do at best."""
    queue: SimpleQueue[int] = SimpleQueue()
    for number in range(records):
        queue.put(number)

    def serve() -> None:
        while True:
            try:
                queue.get_nowait()
            except Empty:
                return
            time.sleep(seconds)

    crowd = [threading.Thread(target=serve) for _ in range(threads)]
    began = time.perf_counter()
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    return time.perf_counter() - began


def parallelism(brokers: str, narrow: str, wide: str, rounds: int, calm: Calm) -> list[dict[str, Any]]:
    def waiting(topic: str, wait: str, **options: Any) -> float:
        busy = Busy()
        penstock(brokers, topic, getattr(busy, wait), **options)
        return busy.seconds

    programs: dict[str, tuple[int, float, Callable[[], float]]] = {
        "10 ms on 100 threads, no Kafka": (10_000, 1.0, lambda: threads_alone(10_000, 100, 0.01)),
        "10 ms on 100 threads, order=key": (
            10_000, 1.0, lambda: waiting(narrow, "wait_10_ms", order="key", concurrency=100)),
        "10 ms on 100 threads, order=none": (
            10_000, 1.0, lambda: waiting(narrow, "wait_10_ms", order="none", concurrency=100)),
        "50 ms, async, 1,000 at once": (
            40_000, 2.0, lambda: waiting(wide, "wait_50_ms", order="none", concurrency=1_000)),
    }  # fmt: skip
    seen: dict[str, list[float]] = {what: [] for what in programs}
    for _ in range(rounds):
        for what, (_, _, program) in programs.items():
            seen[what].append(calm(what, program))
    return [
        {
            "what": what,
            "seconds": median(seen[what]),
            "all": seen[what],
            "records": records,
            "ratio": f"{ideal / median(seen[what]):.1%} of ideal",
        }
        for what, (records, ideal, _) in programs.items()
    ]


def computing(brokers: str, few: str, rounds: int, calm: Calm) -> list[dict[str, Any]]:
    seen: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for processes, seconds in seen.items():
            options = {"workers": "process", "order": "none", "concurrency": processes}
            program = partial(penstock, brokers, few, compute, **options)
            seconds.append(calm(f"{processes} at once", program))
    one = median(seen[1])
    return [
        {
            "what": f"10 ms of computing, {processes} process{'es' if processes > 1 else ''}",
            "seconds": median(seconds),
            "all": seconds,
            "records": 1_000,
            "ratio": f"{one / median(seconds):.2f} x one",
        }
        for processes, seconds in seen.items()
    ]


if __name__ == "__main__":
    typer.run(main)
