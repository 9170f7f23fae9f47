"""One consumer of latency.py and idle_cost.py: latency_consumer.py BROKERS TOPIC OUT PROGRAM RECORDS WARM_UP.

It prints a line when it has all partitions, and one with the milliseconds of each record after the warm-up.
"""

import json
import sys
import threading
import time
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer

from penstock import App, Record
from penstock import engine as local
from penstock.core.reports.events import Assigned, Event
from penstock.kafka import CONSUMER_DEFAULTS, Cluster

BARE = "poll"
WITHOUT_OUTPUT = ("def", "async")


class Arrivals:
    """How long each record was on its way; ``done`` is set when the last one has come."""

    def __init__(self, records: int) -> None:
        self._left = records
        self._lock = threading.Lock()
        self.millis: list[float] = []
        self.done = threading.Event()

    def add(self, value: bytes) -> None:
        # The monotonic clock is the same in all processes of a machine.
        millis = (time.monotonic_ns() - int.from_bytes(value[:8], "big")) / 1e6
        with self._lock:
            self.millis.append(millis)
            self._left -= 1
            if not self._left:
                self.done.set()


def poll(brokers: str, topic: str, arrivals: Arrivals) -> None:
    own = {"bootstrap.servers": brokers, "group.id": uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = Consumer({**CONSUMER_DEFAULTS, **own})
    consumer.subscribe([topic], on_assign=lambda *_: _say("ready"))
    while not arrivals.done.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            arrivals.add(message.value() or b"")
    consumer.close()


def penstock(brokers: str, topic: str, out: str, program: Any, arrivals: Arrivals) -> None:
    app, missing = App(uuid4().hex), {*Cluster(brokers).topic_partitions([topic])}

    def hand_on(record: Record) -> bytes | None:
        arrivals.add(record.value or b"")
        return record.value

    def take(record: Record) -> None:
        arrivals.add(record.value or b"")

    async def take_async(record: Record) -> None:
        arrivals.add(record.value or b"")

    def on_event(event: Event) -> None:
        if isinstance(event, Assigned) and missing:
            missing.discard((event.topic, event.partition))
            if not missing:
                _say("ready")

    if program in WITHOUT_OUTPUT:
        app.consume(topic, order="key", concurrency=8)(take if program == "def" else take_async)
    else:
        app.consume(topic, to=out, delivery=program, order="key", concurrency=8)(hand_on)
    local.run(app, brokers=brokers, emit=on_event, stop=arrivals.done)


def _say(line: str) -> None:
    print(line, flush=True)


def main(brokers: str, topic: str, out: str, program: str, *counts: str) -> None:
    records, warm_up = map(int, counts)
    arrivals = Arrivals(records)
    if program == BARE:
        poll(brokers, topic, arrivals)
    else:
        penstock(brokers, topic, out, program, arrivals)
    _say(json.dumps(arrivals.millis[warm_up:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
