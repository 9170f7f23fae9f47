"""Records from the client to the dispatcher: no more than there is room for, and none twice."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.in_flight import HandedOver, InFlight
from penstock.engine.dispatch.thread_messages import Fetched, Inbox
from penstock.engine.fetch.drain_fetcher import DrainFetcher
from penstock.engine.fetch.fetch_positions import FetchPositions

# How long a poll waits for a first record; commands to the fetcher wait as long.
_POLL_SECONDS = 0.05
_FETCH_LIMIT = 4_000
_PATIENCE_SECONDS = 0.5
_ROOM_CHECK_SECONDS = 0.002


class InFlightRoom(Protocol):
    """How many more records may be delivered, after these; none, if ``much`` is wanted and there is only a little."""

    def __call__(self, delivered: HandedOver, *, much: bool = False) -> int: ...


class RecordPoller:
    """Of one consumer after the other, on the fetcher's thread.

    ``in_flight_room`` tells how many more records may be delivered now, given what was. A poll asks for no more, so the
    bounds on what is in flight hold; where no room comes for a while, every partition is paused and polling goes
    on. ``meanwhile`` is what the fetcher does while it waits for room, and tells whether to go on waiting.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        *,
        in_flight_room: InFlightRoom,
        meanwhile: Callable[[], bool],
    ) -> None:
        self._inbox = inbox
        self._max_in_flight = handler.max_in_flight
        self._in_flight_room = in_flight_room
        self._meanwhile = meanwhile
        self._bounds = InFlight(handler.max_in_flight, handler.max_in_flight_bytes)
        self._delivered = HandedOver()
        self._asked = 0  # so many records at most does the call bring that the client is in
        self._wants_much = False
        topics = {topic for topic, _ in handler.partitions} if handler.partitions else {*handler.consumed_topics}
        self._only_topic = topics.pop() if len(topics) == 1 else None

    def begin(self, consumer: Any, positions: FetchPositions, drain_fetcher: DrainFetcher) -> None:
        """With this consumer from now on."""
        self._consumer = consumer
        self._positions = positions
        self._drain_fetcher = drain_fetcher

    def end(self) -> None:
        self._drain_fetcher.end()

    def poll(self) -> list[Message]:
        room = self._room()
        self._positions.hold(everything=room == 0)
        # What is there already first; a call that asks for many waits until it has them all.
        messages = self._ask(room, 0) if room else []
        return messages or self._ask(1, _POLL_SECONDS)

    def take(self, messages: list[Message]) -> list[Message]:
        """Hand over what a poll brought; returns what came in place of records, but for ends of logs."""
        self._drain_fetcher.end()
        ends: dict[TopicPartition, int] = {}
        troubles: list[Message] = []
        if self._drain_fetcher.overtaken:
            messages = [message for message in messages if not self._is_known(message)]
        if any(map(Message.error, messages)):
            messages = _without_errors(messages, ends, troubles)
        self._hand_over(messages, ends)
        return troubles

    def relieve(self, going: Sequence[TopicPartition]) -> None:
        """Hand over more of what stays, while a drain of these keeps the consumer itself from fetching.

        What it has in its hands already finds room, too.
        """
        staying = {tp: self._positions.position(tp) for tp in self._positions.flowing.difference(going)}
        room = self._in_flight_room(self._delivered) - self._asked - 1
        ends: dict[TopicPartition, int] = {}
        messages = _without_errors(self._drain_fetcher.fetch(staying, min(_FETCH_LIMIT, room)), ends, [])
        self._hand_over(messages, ends)

    def _room(self) -> int:
        """How many records to ask for: none while too many are in flight, until a good part of them is done.

        Pausing throws away what the client has buffered, and it is about a second before more comes after a resume. So
        handlers get a moment to make room first: those who would be through with the rest within that second need less.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        # One place is kept back: with no room, a partition that is assigned in this very poll is not paused yet.
        while (room := self._in_flight_room(self._delivered, much=self._wants_much) - 1) < 1:
            self._wants_much = True
            if self._positions.is_paused or time.monotonic() >= deadline or not self._meanwhile():
                return 0
            time.sleep(_ROOM_CHECK_SECONDS)
        self._wants_much = False
        # The other half is for relief, while a drain keeps what was asked for from coming.
        return min(_FETCH_LIMIT, room, max(1, self._max_in_flight // 2))

    def _ask(self, count: int, seconds: float) -> list[Message]:
        self._asked = count
        try:
            return self._consumer.consume(count, seconds)  # type: ignore[no-any-return]
        finally:
            self._asked = 0

    def _is_known(self, message: Message) -> bool:
        """Whether relief has fetched it before."""
        tp, error = tp_of(message), message.error()
        if tp not in self._drain_fetcher.overtaken or (error is not None and error.code() != KafkaError._PARTITION_EOF):  # noqa: SLF001
            return False
        if tp in self._positions.owned and (message.offset() or 0) < self._positions.position(tp):
            return True
        self._drain_fetcher.overtaken.discard(tp)  # the client is where relief was
        return False

    def _hand_over(self, messages: list[Message], ends: dict[TopicPartition, int]) -> None:
        records: dict[TopicPartition, list[Message]] = {}
        # Messages of one partition come in stretches, so they are sorted a stretch at a time.
        for partition, stretch in groupby(messages, Message.partition):
            for topic, same in self._by_topic(stretch):
                records.setdefault((topic or "", partition or 0), []).extend(same)
        if records or ends:
            excesses = {tp: found for tp, batch in records.items() if (found := self._excesses(batch))}
            self._delivered.add(len(messages), chain.from_iterable(found.values() for found in excesses.values()))
            self._inbox.put(Fetched(records, ends, excesses))
            for tp, batch in records.items():
                self._positions.passed(tp, (batch[-1].offset() or 0) + 1)
            for tp, offset in ends.items():
                self._positions.passed(tp, offset)

    def _excesses(self, batch: list[Message]) -> dict[int, int]:
        # The length of a message is that of its value.
        return self._bounds.excesses(batch, offset_of=_offset_of, size_of=len)

    def _by_topic(self, messages: Iterator[Message]) -> Iterable[tuple[str | None, Iterator[Message]]]:
        return groupby(messages, Message.topic) if self._only_topic is None else [(self._only_topic, messages)]


def _offset_of(message: Message) -> int:
    return message.offset() or 0


def tp_of(message: Message) -> TopicPartition:
    return message.topic() or "", message.partition() or 0


def _without_errors(messages: list[Message], ends: dict[TopicPartition, int], troubles: list[Message]) -> list[Message]:
    good = []
    for message in messages:
        error = message.error()
        if error is None:
            good.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            ends[tp_of(message)] = message.offset() or 0
        else:
            troubles.append(message)
    return good
