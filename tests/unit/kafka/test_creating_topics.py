"""Requests are repeated only for a cluster that has just started or a topic that was just created."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import PenstockError, ServerError
from penstock.kafka.admin import cluster
from penstock.kafka.admin.cluster import Cluster

NOBODY_YET = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced")
NOT_ALLOWED = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
THERE_ALREADY = KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)
UNKNOWN_YET = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
NO_LEADER_YET = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
NO_LEADERS_FOUND = KafkaError(KafkaError._NOENT, "Failed to query partition leaders: No leaders found")


class Answering:
    """An admin client with prepared answers, one for each request."""

    def __init__(self, *answers: KafkaError | None) -> None:
        self.answers = list(answers)
        self.topics: list[str] = []
        self.refreshed = 0

    def list_topics(self, **_: Any) -> Any:
        self.refreshed += 1
        return SimpleNamespace(topics=dict.fromkeys(self.topics, SimpleNamespace(error=None, partitions={})))

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, Future[None]]:
        return {topic.topic: self._answer(None) for topic in topics}

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: self._answer(SimpleNamespace(topic_id="id")) for name in topics.topic_names}

    def list_offsets(self, tps: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        return {tp: self._answer(SimpleNamespace(offset=7)) for tp in tps}

    def _answer(self, result: Any) -> Future[Any]:
        future: Future[Any] = Future()
        answer = self.answers.pop(0) if self.answers else None
        future.set_result(result) if answer is None else future.set_exception(KafkaException(answer))
        return future


def cluster_that_says(monkeypatch: pytest.MonkeyPatch, *answers: KafkaError | None) -> Cluster:
    monkeypatch.setattr(cluster, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(cluster, "require_listener", lambda _: None)
    monkeypatch.setattr(cluster, "AdminClient", lambda *_, **__: Answering(*answers))
    return Cluster("127.0.0.1:1")


def test_a_cluster_that_has_just_started_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = cluster_that_says(monkeypatch, NOBODY_YET, NOBODY_YET, None)
    assert kafka.create_topics(["orders"], partitions=3) == ["orders"]


def test_one_that_stays_without_brokers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", -1)
    kafka = cluster_that_says(monkeypatch, NOBODY_YET)
    with pytest.raises(ServerError, match="creating topic orders: All brokers are currently fenced"):
        kafka.create_topics(["orders"], partitions=3)


def test_a_final_refusal_is_an_error_at_once_and_an_existing_topic_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = cluster_that_says(monkeypatch, THERE_ALREADY, None, None, None, NOT_ALLOWED)
    assert kafka.create_topics(["old", "new"], partitions=1) == ["new"]
    with pytest.raises(ServerError):
        kafka.create_topics(["secret"], partitions=1)


def test_a_topic_counts_as_created_when_all_brokers_know_its_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = cluster_that_says(
        monkeypatch, None, UNKNOWN_YET, NO_LEADERS_FOUND, None, UNKNOWN_YET, None, NO_LEADER_YET, None, None, None, None
    )
    assert kafka.create_topics(["orders"], partitions=2) == ["orders"]
    assert cast("Any", kafka.admin).answers == [None], "asked until both partitions had a leader, and not after that"


def test_a_topic_that_may_be_created_and_not_described_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = cluster_that_says(monkeypatch, None, NOT_ALLOWED)
    assert kafka.create_topics(["orders"], partitions=1) == ["orders"]


def test_a_partition_without_a_leader_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = cluster_that_says(monkeypatch, NO_LEADER_YET, None, None, None)
    tps = [("orders", 0), ("orders", 1)]
    assert kafka.end_offsets(tps) == dict.fromkeys(tps, 7)


def test_a_partition_that_stays_without_a_leader_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", -1)
    kafka = cluster_that_says(monkeypatch, NO_LEADER_YET)
    with pytest.raises(ServerError, match="no leader that answers while reading offsets of orders"):
        kafka.end_offsets([("orders", 0)])


def test_a_client_that_remembers_that_a_topic_is_missing_asks_for_the_metadata_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka = cluster_that_says(monkeypatch, NO_LEADERS_FOUND, NO_LEADERS_FOUND, None)
    admin = cast("Any", kafka.admin)
    admin.topics = ["orders"]
    assert kafka.end_offsets([("orders", 0)]) == {("orders", 0): 7}
    assert admin.refreshed == 2


def test_offsets_of_a_missing_topic_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = cluster_that_says(monkeypatch, NO_LEADERS_FOUND, None)
    with pytest.raises(PenstockError, match="reading offsets of gone"):
        kafka.end_offsets([("gone", 0)])
    assert cast("Any", kafka.admin).answers == [None]
