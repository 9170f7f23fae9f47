"""Single records of a log are read without the records between them, and without waiting for others."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Message, TopicPartition

from penstock.kafka import Cluster
from penstock.kafka.read.read_records import read_positions

_LENGTH = 100_000


class LogConsumer:
    """Every partition has the records 0 to 99,999. Like the client, it waits if it has fewer records than requested."""

    def __init__(self) -> None:
        self.assigned: list[list[int]] = []
        self.served = 0
        self.waited = 0
        self.is_closed = False
        self._next: dict[tuple[str, int], int] = {}

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._next = {(each.topic, each.partition): each.offset for each in partitions}
        self.assigned.append([each.partition for each in partitions])

    def consume(self, count: int, _timeout: float) -> list[Message]:
        # A fetch returns at most this many records, and the next one takes a while.
        found: list[Message] = []
        for (topic, partition), first in self._next.items():
            end = min(first + 600, first + count - len(found), _LENGTH)
            found += [_message(topic, partition, offset) for offset in range(first, end)]
            self._next[topic, partition] = end
        self.served += len(found)
        self.waited += len(found) < count
        return found

    def close(self) -> None:
        self.is_closed = True


def _message(topic: str, partition: int, offset: int) -> Message:
    return Message(topic=topic, partition=partition, offset=offset, value=b"%d" % offset)


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[LogConsumer]:
    """All consumers that were created."""
    made: list[LogConsumer] = []

    def make(*_args: Any, **_options: Any) -> LogConsumer:
        made.append(LogConsumer())
        return made[-1]

    monkeypatch.setattr("penstock.kafka.read.read_records.make_consumer", make)
    return made


def read(wanted: Mapping[tuple[str, int], Sequence[int]]) -> list[tuple[int, int]]:
    cluster = cast("Cluster", SimpleNamespace(brokers="", settings={}))
    return [(record.partition, record.offset) for record in read_positions(cluster, wanted)]


def test_of_records_that_are_far_apart_no_others_are_read_and_none_is_waited_for(consumers: list[LogConsumer]) -> None:
    wanted = range(5_000, _LENGTH, 10_000)
    assert read({("orders", 0): wanted, ("orders", 1): wanted}) == [(each, at) for each in (0, 1) for at in wanted]
    assert [(each.served, each.waited) for each in consumers] == [(5, 0)] * 4


def test_records_that_are_near_each_other_are_read_in_one_go(consumers: list[LogConsumer]) -> None:
    assert read({("orders", 0): [700, 300, 50_100, 50_000]}) == [(0, 300), (0, 700), (0, 50_000), (0, 50_100)]
    (consumer,) = consumers
    assert consumer.assigned == [[0], [0]]
    assert (consumer.served, consumer.waited) == (401 + 101, 0)


def test_one_partition_is_read_at_a_time_as_those_that_are_done_would_be_fetched_on(
    consumers: list[LogConsumer],
) -> None:
    assert read({("orders", number): [7] for number in range(3)}) == [(0, 7), (1, 7), (2, 7)]
    (consumer,) = consumers
    assert consumer.assigned == [[0], [1], [2]]


def test_many_records_are_read_by_a_few_consumers_and_come_in_their_order(consumers: list[LogConsumer]) -> None:
    wanted = {("orders", number): range(0, _LENGTH, 1_000) for number in range(3)}
    assert read(wanted) == [(number, at) for number in range(3) for at in range(0, _LENGTH, 1_000)]
    assert [len(each.assigned) for each in consumers] == [75] * 4
    assert all(each.is_closed for each in consumers)


def test_nothing_is_read_where_nothing_is_wanted(consumers: list[LogConsumer]) -> None:
    assert read({}) == []
    assert consumers == []
