"""What the guarantees cost, in one run on one machine: python benchmarks/guarantees.py.

Delivery: a handler that returns its value, from one topic to another, with each delivery in turn. Transactions end
every 100 ms. Hot partition: a handler that waits 10 ms, on one partition, in key order, without order, and as a queue.
"""

import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill, show
from local_engine import Stopwatch

from penstock import App, Record
from penstock import engine as local
from penstock.kafka import Cluster

_HOT_RECORDS = 5_000
_AT_ONCE = 100
_PARTITIONS = 4
_DELIVERIES = ("at-least-once", "at-most-once", "exactly-once")


def hand_on(record: Record) -> bytes | None:
    return record.value


def copy(brokers: str, topic: str, delivery: str) -> float:
    """Seconds until all of the topic is copied, and committed."""
    app, out = App(uuid4().hex), f"bench-{uuid4().hex[:8]}"
    Cluster(brokers).create_topics([out], partitions=_PARTITIONS)
    app.consume(topic, to=out, delivery=delivery, order="key", concurrency=8)(hand_on)  # type: ignore[arg-type]
    watch = Stopwatch()
    local.run(app, brokers=brokers, emit=watch, stop=threading.Event(), until_caught_up=True)
    Cluster(brokers).delete_topics([out])
    return watch.seconds


class Hot:
    """From the first call of a handler to the end of the last; a queue does not say that it has caught up."""

    def __init__(self, records: int) -> None:
        self._left = records
        self._lock = threading.Lock()
        self.began = self.ended = 0.0
        self.done = threading.Event()

    def wait_10_ms(self, record: Record) -> None:
        self.began = self.began or time.perf_counter()
        time.sleep(0.01)
        with self._lock:
            self._left -= 1
            if not self._left:
                self.ended = time.perf_counter()
                self.done.set()


def heat(brokers: str, topic: str, **options: Any) -> float:
    app, hot = App(uuid4().hex), Hot(_HOT_RECORDS)
    app.consume(topic, **options)(hot.wait_10_ms)
    local.run(app, brokers=brokers, emit=lambda _event: None, stop=hot.done)
    return hot.ended - hot.began


def main(
    records: int = 200_000,
    rounds: int = 5,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    with broker(brokers) as address:
        results = measure(address, records, rounds)
    show(results, title=f"medians of {rounds} rounds, taken in turns", as_json=as_json)


def measure(brokers: str, records: int, rounds: int) -> list[dict[str, Any]]:
    topic, hot, crumbs, letters = (f"bench-{uuid4().hex[:8]}" for _ in range(4))
    fill(brokers, topic, records, _PARTITIONS)
    fill(brokers, hot, _HOT_RECORDS, 1)
    # Brokers lock whole batches of the producer for one member of a share group.
    fill(brokers, crumbs, _HOT_RECORDS, 1, settings={"batch.num.messages": _AT_ONCE // 4})
    four = {"concurrency": _AT_ONCE // 4, "members": 4}
    shared = {"mode": "share", "order": "none", "dead_letter": letters}
    deliveries = {f"copy, {each}": lambda each=each: copy(brokers, topic, each) for each in _DELIVERIES}
    modes: dict[str, Callable[[], float]] = {
        "hot partition, order=key": lambda: heat(brokers, hot, order="key", concurrency=_AT_ONCE),
        "hot partition, order=none": lambda: heat(brokers, hot, order="none", concurrency=_AT_ONCE),
        "hot partition, mode=share": lambda: heat(brokers, hot, concurrency=_AT_ONCE, **shared),
        "hot partition, mode=share, 4 members": lambda: heat(brokers, hot, **four, **shared),
        "the same, written in small batches": lambda: heat(brokers, crumbs, concurrency=_AT_ONCE, **shared),
        "the same, 4 members": lambda: heat(brokers, crumbs, **four, **shared),
    }
    try:
        return [
            *in_turns(deliveries, records, rounds, base="copy, at-least-once"),
            *in_turns(modes, _HOT_RECORDS, rounds, base="hot partition, order=none"),
        ]
    finally:
        Cluster(brokers).delete_topics([topic, hot, crumbs, letters])


def in_turns(programs: dict[str, Callable[[], float]], records: int, rounds: int, *, base: str) -> list[dict[str, Any]]:
    """This machine is not as fast in one minute as in the next, so all take turns and a median counts."""
    seen: dict[str, list[float]] = {what: [] for what in programs}
    for _ in range(rounds):
        for what, program in programs.items():
            seen[what].append(program())
    typical = {what: median(seconds) for what, seconds in seen.items()}
    return [
        {
            "what": what,
            "seconds": seconds,
            "all": seen[what],
            "records": records,
            "ratio": f"{typical[base] / seconds:.2f} x {base.rpartition(', ')[2]}",
        }
        for what, seconds in typical.items()
    ]


if __name__ == "__main__":
    typer.run(main)
