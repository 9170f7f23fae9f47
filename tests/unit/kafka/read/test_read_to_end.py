"""A log is read up to its end, and a log that cannot be read to its end is an error."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from penstock.errors import ServerError
from penstock.kafka import Cluster
from penstock.kafka.error_codes import Code
from penstock.kafka.read.read_records import read_to_end

CLUSTER = cast("Cluster", SimpleNamespace(brokers="b:9092", settings={}))
STARTS = {("t", 0): 3, ("u", 0): 0}


class Polls:
    """A consumer that returns one list of messages for each poll, and then nothing."""

    def __init__(self, *polls: Sequence[Message]) -> None:
        self._polls = list(polls)
        self.assigned: list[tuple[str, int, int]] = []
        self.is_closed = False

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.assigned = [(each.topic, each.partition, each.offset) for each in partitions]

    def consume(self, _count: int, _timeout: float) -> Sequence[Message]:
        return self._polls.pop(0) if self._polls else []

    def close(self) -> None:
        self.is_closed = True


def message(topic: str, offset: int, code: int | None = None) -> Message:
    error = None if code is None else KafkaError(code)
    return Message(topic=topic, partition=0, offset=offset, value=b"x", error=error)


def end(topic: str) -> Message:
    return message(topic, 9, Code.LOCAL_PARTITION_EOF)


def read(monkeypatch: pytest.MonkeyPatch, polls: Polls, **options: Any) -> list[tuple[str | None, int | None]]:
    monkeypatch.setattr("penstock.kafka.read.read_records.make_consumer", lambda *_, **__: polls)
    found = read_to_end(CLUSTER, options.pop("starts", STARTS), doing="reading t", **options)
    return [(each.topic(), each.offset()) for each in found]


def test_it_reads_until_every_partition_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = Polls([message("t", 3), end("t")], [], [message("u", 0)], [end("t"), message("u", 1), end("u")])
    assert read(monkeypatch, polls) == [("t", 3), ("u", 0), ("u", 1)]
    assert polls.assigned == [("t", 0, 3), ("u", 0, 0)]
    assert polls.is_closed


def test_without_partitions_it_connects_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = Polls()
    assert read(monkeypatch, polls, starts={}) == []
    assert not polls.assigned


def test_a_log_that_is_not_read_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = Polls([message("t", 3), end("t")])
    with pytest.raises(TimeoutError):
        read(monkeypatch, polls, seconds=0.01)
    assert polls.is_closed


def test_a_final_error_is_raised_and_a_passing_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    passing = Polls([message("t", 3, Code.LEADER_NOT_AVAILABLE)], [end("t"), end("u")])
    assert read(monkeypatch, passing) == []
    with pytest.raises(ServerError, match="denied reading t"):
        read(monkeypatch, Polls([message("t", 3, Code.TOPIC_AUTHORIZATION_FAILED)]))


def test_a_reader_without_a_time_limit_can_raise_every_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerError, match="no leader that answers while reading t"):
        read(monkeypatch, Polls([message("t", 3, Code.LEADER_NOT_AVAILABLE)]), is_error=lambda _: True)
