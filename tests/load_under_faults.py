"""An app that consumes what is written all the time, while brokers are killed."""

import os
import signal
import threading
from collections import Counter
from functools import partial
from typing import Any
from uuid import uuid4

import psutil

from kafka_helpers import WAIT_SECONDS, Running, committed, running, wait_for
from penstock import App
from penstock.devkit import Embedded
from penstock.kafka import Cluster, make_producer

PARTITIONS = 3


class Load:
    """Writes continuously until ``stop``; ``written`` has the values that brokers have acknowledged."""

    def __init__(self, brokers: str, topic: str) -> None:
        self.written: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(brokers, topic), daemon=True)
        self._thread.start()

    def _run(self, brokers: str, topic: str) -> None:
        # Room for all records that a test writes while no broker is available.
        producer = make_producer(brokers, settings={"queue.buffering.max.messages": 1_000_000})
        number = 0
        while not self._stop.wait(0.002):
            producer.produce(
                topic,
                value=str(number).encode(),
                partition=number % PARTITIONS,
                on_delivery=partial(self._on_delivery, number),
            )
            producer.poll(0)
            number += 1
        assert producer.flush(WAIT_SECONDS) == 0

    def _on_delivery(self, number: int, error: object, _message: object) -> None:
        if error is None:
            self.written.add(number)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()


def kill(kafka: Embedded, broker: int) -> None:
    (pid,) = [server.pid for server in kafka.status().brokers if server.id == broker]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(pid), "the broker to be gone")


def _is_known(topic: str, broker: str) -> bool:
    """The client that created a topic may know it before all brokers do."""
    return topic in Cluster(broker).topics()


def consume_under_faults(brokers: str, faults: Any) -> tuple[Running, set[int], Counter[int]]:
    """Run a member during the faults; returns it, the written values, and how often each was handled."""
    topic, group = f"topic-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    cluster = Cluster(brokers)
    cluster.create_topics([topic], partitions=PARTITIONS)
    for broker in brokers.split(","):
        wait_for(partial(_is_known, topic, broker), f"{broker} to hear of the topic")
    app, seen = App(group), Counter[int]()

    @app.consume(topic, commit_every="100ms")
    def handle(value: int) -> None:
        seen[value] += 1

    load = Load(brokers, topic)
    with running(app, brokers) as member:
        wait_for(lambda: len(seen) > 300 or member.error, "the member to work")
        assert member.error is None
        faults(group)
        before = len(seen)
        wait_for(lambda: len(seen) > before + 300, "the member to work again")
        load.stop()
        wait_for(lambda: load.written <= seen.keys(), "everything that was written")
    assert member.error is None
    assert sum(committed(cluster, group, topic).values()) >= len(load.written)
    return member, load.written, seen
