"""Brokers that are killed, and consumers that break: the member recovers and loses no record."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafka_helpers import WAIT_SECONDS, MakeTopic, Running, committed, of_kind, produce, running, wait_for
from penstock import App
from penstock.core.reports import events
from penstock.devkit import Embedded, UpOptions
from penstock.engine.fetch import fetcher
from penstock.engine.fetch.owned_consumer import OwnedConsumer
from penstock.errors import StateError
from penstock.kafka import Cluster, make_consumer, make_producer

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


@contextmanager
def cluster_of(folder: pytest.TempPathFactory, brokers: int) -> Iterator[Embedded]:
    kafka = Embedded(folder.mktemp(f"faults-{brokers}"))
    try:
        kafka.up(UpOptions(brokers=brokers, port=0))
        yield kafka
    finally:
        kafka.down()


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


def test_a_broker_that_is_killed_and_started_again_costs_no_record(tmp_path_factory: pytest.TempPathFactory) -> None:
    with cluster_of(tmp_path_factory, 1) as kafka:

        def faults(_: str) -> None:
            kill(kafka, 1)
            kafka.up()

        member, written, _ = consume_under_faults(kafka.bootstrap() or "", faults)
        assert len(written) > 600
        assert of_kind(member.events, events.Error), "an outage is reported"
        assert not [event for event in of_kind(member.events, events.Error) if event.fatal]


def test_a_coordinator_that_dies_is_replaced_and_no_record_is_lost(tmp_path_factory: pytest.TempPathFactory) -> None:
    with cluster_of(tmp_path_factory, 3) as kafka:
        brokers = kafka.bootstrap() or ""
        admin = AdminClient({"bootstrap.servers": brokers})

        def coordinator(group: str) -> int:
            try:
                node = admin.describe_consumer_groups([group])[group].result().coordinator
            except KafkaException:
                return 0
            return 0 if node is None else int(node.id)

        def faults(group: str) -> None:
            old = coordinator(group)
            kill(kafka, old)
            wait_for(lambda: coordinator(group) not in {0, old}, "another broker to take over")

        member, _, _ = consume_under_faults(brokers, faults)
        offsets: dict[int, list[int]] = {}
        for event in of_kind(member.events, events.Committed):
            offsets.setdefault(event.partition, []).append(event.offset)
        assert all(each == sorted(each) for each in offsets.values()), "no commit overtakes a newer one"


# Consumers that break.


class Breaking:
    """A consumer that raises the next error of a list, if there is one."""

    def __init__(self, consumer: Any, orders: "list[KafkaException]") -> None:
        self._consumer = consumer
        self._orders = orders

    def consume(self, *arguments: Any) -> Any:
        if self._orders:
            raise self._orders.pop()
        return self._consumer.consume(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


@pytest.fixture
def break_consumers(monkeypatch: pytest.MonkeyPatch) -> "list[KafkaException]":
    orders: list[KafkaException] = []
    monkeypatch.setattr(
        fetcher, "make_consumer", lambda *args, **options: Breaking(make_consumer(*args, **options), orders)
    )
    return orders


def test_a_broken_consumer_is_replaced_after_a_moment(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, break_consumers: "list[KafkaException]"
) -> None:
    source, seen = make_topic(2), Counter[int]()
    lost: list[tuple[str, int]] = []
    app = App(group)

    @app.consume(source, on_lost=lost.extend, commit_every="100ms")
    def handle(value: int) -> None:
        seen[value] += 1

    produce(brokers, source, range(100))
    with running(app, brokers) as member:
        wait_for(lambda: committed(cluster, group, source) == {0: 100, 1: 0}, "the first records")
        break_consumers.append(KafkaException(KafkaError(KafkaError._FATAL, "it broke", True)))  # noqa: FBT003
        wait_for(lambda: len(of_kind(member.events, events.Assigned)) == 4, "new epochs on a new consumer")
        produce(brokers, source, range(100, 200), partition=1)
        wait_for(lambda: len(seen) == 200, "what came afterwards")
        wait_for(lambda: committed(cluster, group, source) == {0: 100, 1: 100}, "commits to go on")
        assert [(error.fatal, "it broke" in error.reason) for error in of_kind(member.events, events.Error)] == [
            (False, True)
        ]
    assert sorted(lost) == [(source, 0), (source, 1)]
    assert len(of_kind(member.events, events.Lost)) == 2
    assert set(seen.values()) == {1}


def test_a_consumer_that_is_not_allowed_is_not_replaced(
    brokers: str, group: str, make_topic: MakeTopic, break_consumers: "list[KafkaException]"
) -> None:
    source = make_topic()
    app = App(group)
    app.consume(source)(lambda _: None)
    member = Running(app, brokers)
    wait_for(lambda: of_kind(member.events, events.Assigned), "an assignment")
    break_consumers.append(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
    member.join()
    assert "Ask for an ACL" in str(member.error)


def test_a_second_thread_cannot_touch_the_consumer(brokers: str, group: str) -> None:
    consumer = OwnedConsumer(make_consumer(brokers, group, settings={}))
    with pytest.raises(StateError, match="belongs to no thread yet"):
        consumer.consume(1, 0)
    caught: list[StateError] = []

    def intrude() -> None:
        try:
            consumer.commit()
        except StateError as error:
            caught.append(error)

    consumer.adopt()
    assert consumer.consume(1, 0) == []
    thread = threading.Thread(target=intrude, name="intruder")
    thread.start()
    thread.join()
    assert "Consumer.commit was called on thread 'intruder'" in str(caught[0])
    assert "Fetcher.ask" in caught[0].hint
    consumer.close()
