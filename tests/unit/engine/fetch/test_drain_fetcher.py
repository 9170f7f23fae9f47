"""The temporary consumer that fetches retained partitions while a revoke blocks the main consumer."""

from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from penstock import App
from penstock.engine.dispatch.thread_messages import Fetched, Inbox
from penstock.engine.fetch.drain_fetcher import DrainFetcher
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.engine.fetch.record_poller import RecordPoller
from penstock.errors import ConfigError
from penstock.kafka import make_consumer

STAYS, GOES = ("orders", 0), ("orders", 1)


class Client:
    """Has these records of one partition, and returns as many as the caller asks for."""

    def __init__(self, offsets: Iterable[int] = (), *, error: int | None = None) -> None:
        self.offsets = list(offsets)
        self.ends_before: set[int] = set()
        self.error = error
        self.assigned: list[TopicPartition] = []
        self.closed = False

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def consume(self, count: int, _seconds: float) -> list[Any]:
        if self.error is not None:
            raise KafkaException(KafkaError(self.error))
        taken, self.offsets = self.offsets[:count], self.offsets[count:]
        return [message for offset in taken for message in self._messages(offset)]

    def _messages(self, offset: int) -> list[Any]:
        """The record, or first the end of the partition if the log ended there for a moment."""
        end = Message(topic="orders", partition=0, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF))
        record = Message(topic="orders", partition=0, offset=offset)
        return [end, record] if offset in self.ends_before else [record]

    def close(self) -> None:
        self.closed = True


def test_a_drain_fetcher_continues_at_the_members_position_and_is_closed_after_the_drain() -> None:
    client = Client([7, 8])
    drain_fetcher = DrainFetcher(lambda: client)
    assert [each.offset() for each in drain_fetcher.fetch({STAYS: 7}, 10)] == [7, 8]
    assert [(each.partition, each.offset) for each in client.assigned] == [(0, 7)]
    assert drain_fetcher.fetched_here == {STAYS}
    drain_fetcher.end()
    assert client.closed
    drain_fetcher.end()


def test_without_room_or_partitions_no_client_is_made() -> None:
    drain_fetcher = DrainFetcher(lambda: pytest.fail("nobody asked for one"))
    assert drain_fetcher.fetch({STAYS: 7}, 0) == drain_fetcher.fetch({}, 10) == []


def test_a_drain_fetcher_that_fails_delivers_nothing_and_the_next_drain_tries_again() -> None:
    clients = [Client(error=KafkaError._ALL_BROKERS_DOWN), Client([3])]
    drain_fetcher = DrainFetcher(lambda: clients.pop(0))
    assert drain_fetcher.fetch({STAYS: 3}, 10) == drain_fetcher.fetch({STAYS: 3}, 10) == []
    assert not drain_fetcher.fetched_here
    drain_fetcher.end()
    assert len(drain_fetcher.fetch({STAYS: 3}, 10)) == 1


def test_a_drain_right_after_another_reads_only_what_stays_in_that_one() -> None:
    clients = [Client([3, 4]), Client([5])]
    drain_fetcher, (first, second) = DrainFetcher(lambda: clients.pop(0)), clients
    drain_fetcher.fetch({STAYS: 3, GOES: 3}, 1)
    assert [each.offset() for each in drain_fetcher.fetch({STAYS: 4}, 10)] == [5]
    assert first.closed
    assert [(each.partition, each.offset) for each in second.assigned] == [(0, 4)]


def test_a_client_that_cannot_be_made_is_done_without() -> None:
    asked = []

    def refuse() -> Client:
        asked.append(1)
        raise ConfigError("There is no such certificate.", hint="Look for it.")

    drain_fetcher = DrainFetcher(refuse)
    assert drain_fetcher.fetch({STAYS: 3}, 10) == drain_fetcher.fetch({STAYS: 3}, 10) == []
    assert len(asked) == 1, "once in a drain"
    drain_fetcher.end()


class HandlerMember:
    """A poller during a drain, with the main client and the temporary one."""

    def __init__(self, drain_fetcher: Iterable[int], own: Iterable[int], *, max_in_flight: int = 100) -> None:
        app = App("shop")
        app.consume("orders", max_in_flight=max_in_flight)(lambda value: None)
        self.inbox = Inbox()
        self.poller = RecordPoller(
            app.handlers[0],
            self.inbox,
            in_flight_room=lambda delivered, **_: max_in_flight - delivered.records,
            while_full=lambda: True,
        )
        positions = FetchPositions(make_consumer("localhost:1", "shop", settings={}), cooperates=True)
        positions._next = {STAYS: 5, GOES: 5}
        self.own, self.drain_client = Client(own), Client(drain_fetcher)
        self.drain_fetcher = DrainFetcher(lambda: self.drain_client)
        self.poller.begin(self.own, positions, self.drain_fetcher)

    def drain(self, *, asked: int = 0) -> None:
        self.poller._asked = asked
        self.poller.fetch_during_drain([GOES])
        self.poller._asked = 0

    def fetch(self) -> None:
        assert not self.poller.take(self.poller.poll())

    def delivered(self) -> list[int]:
        offsets = []
        while not self.inbox.empty():
            got = self.inbox.get()
            assert isinstance(got, Fetched)
            offsets += [each.offset() for each in got.records[STAYS]]
        return offsets


@pytest.mark.parametrize("own", [range(5, 20), range(5, 8), range(8, 20)], ids=["all", "a few", "none of the known"])
def test_records_of_the_drain_fetcher_arrive_once_and_later_ones_are_not_missing(own: range) -> None:
    member = HandlerMember(drain_fetcher=range(5, 8), own=own)
    member.drain()
    member.fetch()
    assert member.delivered() == list(range(5, max(8, own.stop)))
    member.own.offsets = list(range(max(8, own.stop), 25))
    member.fetch()
    assert member.delivered() == list(range(max(8, own.stop), 25))
    assert not member.drain_fetcher.fetched_here


def test_the_end_of_a_partition_before_records_of_the_same_poll_does_not_bring_them_again() -> None:
    member = HandlerMember(drain_fetcher=range(5, 8), own=range(5, 20))
    member.drain_client.ends_before = {6}
    member.drain()
    member.fetch()
    assert member.delivered() == list(range(5, 20))


def test_there_is_room_for_what_the_client_has_in_its_hands() -> None:
    member = HandlerMember(drain_fetcher=range(5, 105), own=(), max_in_flight=40)
    member.drain(asked=20)
    assert member.delivered() == list(range(5, 24)), "40, minus the requested records, minus one"
