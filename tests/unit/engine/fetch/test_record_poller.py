"""What the fetcher hands to the dispatcher, and when it stays silent."""

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from penstock import App
from penstock.engine.dispatch.thread_messages import Fetched, Inbox
from penstock.engine.fetch.drain_fetcher import DrainFetcher
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.engine.fetch.record_poller import RecordPoller

TP = ("orders", 0)
Told = tuple[list[int], dict[int, int]]
"""The offsets of the records of the partition, and the ends by partition."""


class Client:
    """Returns these messages, one by one, and accepts assignments."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def consume(self, _count: int, _seconds: float) -> list[Message]:
        taken, self.messages = self.messages[:1], self.messages[1:]
        return taken

    def incremental_assign(self, _partitions: Sequence[Any]) -> None: ...

    def resume(self, _partitions: Sequence[Any]) -> None: ...

    def seek(self, _partition: Any) -> None: ...


class Poller:
    """Hands on what a poll returned, of a partition that begins at offset 5."""

    def __init__(self) -> None:
        app = App("shop")
        app.consume("orders")(lambda value: None)
        self.inbox = Inbox()
        self._poller = RecordPoller(
            app.handlers[0], self.inbox, in_flight_room=lambda delivered, **_: 100, while_full=lambda: True
        )
        self.client = Client()
        self.positions = FetchPositions(self.client, cooperates=True)
        self._poller.begin(self.client, self.positions, DrainFetcher(lambda: pytest.fail("there is no drain")))
        self.positions.add({TP: 5})

    def poll(self, *buffered: Message) -> list[tuple[int | None, bool]]:
        """Return offsets, each with whether it is the end of the partition."""
        self._poller._has_buffered = False  # as after a poll that had to wait
        self.client.messages = [*buffered]
        return [(message.offset(), message.error() is not None) for message in self._poller.poll()]

    def take(self, *messages: Message) -> list[Told]:
        """Return what the dispatcher gets."""
        assert not self._poller.take([*messages])
        told: list[Told] = []
        while not self.inbox.empty():
            got = self.inbox.get()
            assert isinstance(got, Fetched)
            offsets = [message.offset() for batch in got.records.values() for message in batch]
            told.append((offsets, {partition: offset for (_, partition), offset in got.ends.items()}))
        return told


def record(offset: int) -> Message:
    return Message(topic="orders", partition=0, offset=offset, value=b"", error=None)


def end(offset: int, partition: int = 0) -> Message:
    error = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic="orders", partition=partition, offset=offset, error=error)


def test_the_end_behind_a_record_is_no_news() -> None:
    poller = Poller()
    assert poller.take(record(5)) == [([5], {})]
    assert poller.take(end(6)) == [], "to wake the dispatcher for it would cost as much as a record"
    assert poller.take(record(6), end(7)) == [([6], {})]


def test_a_poll_that_finds_only_a_known_end_asks_once_more() -> None:
    poller = Poller()
    assert poller.poll(end(5)) == [(5, True)], "the first end after an assignment is not known"
    poller.take(record(5))
    assert poller.poll(end(6), record(6)) == [(6, False)]
    assert poller.poll(end(6), end(6), record(6)) == [(6, True)], "but not again and again: commands wait meanwhile"
    assert poller.poll(end(8), record(8)) == [(8, True)]


def test_an_end_behind_offsets_without_records_is_reported_once() -> None:
    poller = Poller()
    assert poller.take(record(5)) == [([5], {})]
    assert poller.take(end(8)) == [([], {0: 8})], "otherwise the group would lag behind transaction markers"
    assert poller.take(end(8)) == []


def test_the_first_end_after_an_assignment_is_reported() -> None:
    poller = Poller()
    assert poller.take(end(5)) == [([], {0: 5})], "otherwise a run until caught up would not end"
    assert poller.take(end(5)) == []
    poller.positions.remove([TP])
    assert poller.take(end(5)) == []
    poller.positions.add({TP: 5})
    assert poller.take(end(5)) == [([], {0: 5})]


def test_after_a_seek_back_an_end_behind_missing_records_is_reported_again() -> None:
    poller = Poller()
    assert poller.take(record(5), end(8)) == [([5], {0: 8})]
    poller.positions.seek(TP, 6)
    assert poller.take(end(8)) == [([], {0: 8})], "the dispatcher may have dropped the first one"
