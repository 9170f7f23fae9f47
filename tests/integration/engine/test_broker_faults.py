"""Brokers that are killed, and consumers that break: the member recovers and loses no record."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_helpers import MakeTopic, Running, committed, of_kind, produce, running, wait_for
from load_under_faults import consume_under_faults, kill
from penstock import App
from penstock.core.reports import events
from penstock.devkit import Embedded, UpOptions
from penstock.engine.fetch import fetcher
from penstock.engine.fetch.owned_consumer import OwnedConsumer
from penstock.errors import StateError
from penstock.kafka import Cluster, make_consumer


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Embedded]:
    """A broker for one test."""
    kafka = Embedded(tmp_path / "mortal")
    try:
        kafka.up(UpOptions(port=0))
        yield kafka
    finally:
        kafka.down()


def test_a_broker_that_is_killed_and_started_again_costs_no_record(mortal: Embedded) -> None:
    def faults(_: str) -> None:
        kill(mortal, 1)
        mortal.up()

    member, written, _ = consume_under_faults(mortal.bootstrap() or "", faults)
    assert len(written) > 600
    assert of_kind(member.events, events.Error), "an outage is reported"
    assert not [event for event in of_kind(member.events, events.Error) if event.fatal]


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
