"""A self-managed member rejoins when its topics or their partitions have changed."""

from collections.abc import Iterable
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException

from penstock import App
from penstock.app import Handler
from penstock.assign import Topic
from penstock.core.reports.rebalance import PARTITIONS_CHANGED, TOPICS_CHANGED, GroupSnapshot
from penstock.kafka.error_codes import Code
from penstock.kafka.group.coordinator import CoordinatorConnection
from penstock.kafka.group.subscribed_topics import SubscribedTopics


class Brokers:
    """A cluster with these topics, each with its number of partitions; None if it does not answer."""

    def __init__(self, **counts: int) -> None:
        self.counts: dict[str, int] | None = counts

    def topics(self, names: Iterable[str] | None) -> dict[str, Topic]:
        if self.counts is None:
            raise KafkaException(KafkaError(Code.LOCAL_TIMED_OUT))
        wanted = self.counts if names is None else set(names)
        return {name: Topic(count) for name, count in self.counts.items() if name in wanted}


def make_handler(*topics: str, **options: Any) -> Handler:
    app = App("shop")

    @app.consume(*topics, **options)
    def ship(value: bytes) -> None:
        pass

    return app.handlers[0]


def subscribed(handler: Handler, brokers: Brokers) -> SubscribedTopics:
    topics = SubscribedTopics(handler, cast("CoordinatorConnection", brokers))
    topics.joined(topics.current())
    return topics


def seen_by_leader(**counts: int) -> GroupSnapshot:
    return GroupSnapshot(frozenset({"m"}), {"m": frozenset(counts)}, counts, pending=False)


def test_a_new_topic_that_matches_the_pattern_is_a_reason_to_rejoin() -> None:
    brokers = Brokers(orders=2, other=1)
    topics = subscribed(make_handler(pattern="orders.*"), brokers)
    assert topics.current() == {"orders"}
    assert topics.check(None) is None
    brokers.counts = {"orders": 2, "orders2": 1}
    assert topics.check(None) == TOPICS_CHANGED


def test_only_the_leader_rejoins_for_new_partitions() -> None:
    brokers = Brokers(orders=2)
    topics = subscribed(make_handler("orders"), brokers)
    assert topics.check(seen_by_leader(orders=2)) is None
    brokers.counts = {"orders": 3}
    assert topics.check(None) is None
    assert topics.check(seen_by_leader(orders=2)) == PARTITIONS_CHANGED


def test_brokers_that_do_not_answer_are_asked_again_later() -> None:
    brokers = Brokers(orders=2)
    topics = subscribed(make_handler(pattern="orders.*"), brokers)
    brokers.counts = None
    assert topics.check(None) is None
    assert topics.next_check > 0.0
