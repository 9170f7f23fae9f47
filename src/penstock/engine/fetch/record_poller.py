"""Polls records and sends them to the dispatcher: no more than fit in flight, and no record twice."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Protocol

from confluent_kafka import Message

from penstock.app import Handler
from penstock.core.progress.stop_offsets import stop_at
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.in_flight import HandedOver, InFlight
from penstock.engine.dispatch.thread_messages import Fetched, Inbox
from penstock.engine.fetch.drain_fetcher import DrainFetcher
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.kafka.client.message_records import tp_of
from penstock.kafka.error_codes import Code

# How long a poll waits for a first record. Commands to the fetcher wait as long.
_POLL_SECONDS = 0.05
# The same for a member that has had nothing in flight for a while: then there is nothing to commit or to pause.
_IDLE_POLL_SECONDS = 0.25
_IDLE_POLLS = 60
_MAX_POLL_RECORDS = 4_000
# How long to wait for handlers to make room before every partition is paused.
_FULL_SECONDS = 0.5
_ROOM_CHECK_SECONDS = 0.002
# A poll that took longer had to wait for its record.
_WAITED_SECONDS = 0.0001


class InFlightRoom(Protocol):
    """Return how many more records may be delivered after these; 0 if ``much`` room is wanted and there is little."""

    def __call__(self, delivered: HandedOver, *, much: bool = False) -> int: ...


class RecordPoller:
    """Runs on the fetcher thread; a new consumer may replace a broken one (``begin``).

    ``in_flight_room`` returns how many more records may be delivered now. A poll asks for no more, so the limits on
    records in flight hold. If there is no room for half a second, every partition is paused and polling continues. The
    fetcher calls ``while_full`` while it waits for room; False ends the wait.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        *,
        in_flight_room: InFlightRoom,
        while_full: Callable[[], bool],
    ) -> None:
        self._inbox = inbox
        self._max_in_flight = handler.max_in_flight
        self._in_flight_room = in_flight_room
        self._while_full = while_full
        self._bounds = InFlight(handler.max_in_flight, handler.max_in_flight_bytes)
        self._delivered = HandedOver()
        self._asked = 0  # the limit of the consume() call in progress
        self._wants_much = False
        self._is_empty = True  # nothing is in flight
        self._idle_polls = 0  # so many polls in a row found nothing in flight and returned nothing
        self._is_self_managed = handler.is_self_managed  # its membership needs attention between polls
        self._has_buffered = True  # whether the client may have buffered records
        self._consume: Callable[[int, float], list[Message]]
        self._clock = time.monotonic
        self._stops = None if handler.replay_range is None else handler.replay_range.ends
        topics = {topic for topic, _ in handler.partitions} if handler.partitions else {*handler.consumed_topics}
        self._only_topic = topics.pop() if len(topics) == 1 else None

    def begin(self, consumer: Any, positions: FetchPositions, drain_fetcher: DrainFetcher) -> None:
        """Use this consumer from now on."""
        self._consume = consumer.consume
        self._positions = positions
        self._drain_fetcher = drain_fetcher

    def end(self) -> None:
        self._drain_fetcher.end()

    def poll(self) -> list[Message]:
        room = self._room()
        self._positions.set_paused(everything=room == 0)
        if self._has_buffered and room:
            # Only the records that the client has buffered: a call for many records waits until it has them all.
            messages = self._ask(room, 0)
            if messages:
                return messages
        began = self._clock()
        self._idle_polls = self._idle_polls + 1 if self._is_empty else 0
        is_idle = self._idle_polls > _IDLE_POLLS and not self._is_self_managed
        seconds = _IDLE_POLL_SECONDS if is_idle else _POLL_SECONDS
        messages = self._ask(1, seconds)
        if messages and self._is_known_end(messages[0]):
            messages = self._ask(1, seconds)
        if messages:
            self._idle_polls = 0
        # A call that had to wait has most likely returned the only record. If not, the next one does not have to wait.
        self._has_buffered = bool(messages) and self._clock() - began < _WAITED_SECONDS
        return messages

    def take(self, messages: list[Message]) -> list[Message]:
        """Send the records and the ends of partitions to the dispatcher; return the error messages."""
        self._drain_fetcher.end()
        ends: dict[TopicPartition, int] = {}
        errors: list[Message] = []
        if self._drain_fetcher.fetched_here:
            messages = [message for message in messages if not self._is_known(message)]
        if any(map(Message.error, messages)):
            messages = _without_errors(messages, ends, errors)
        self._hand_over(messages, ends)
        return errors

    def fetch_during_drain(self, revoked: Sequence[TopicPartition]) -> None:
        """Fetch the other partitions with a temporary consumer, while a drain of ``revoked`` blocks the main one.

        The room leaves space for the records that the blocked call still returns.
        """
        retained = {tp: self._positions.position(tp) for tp in self._positions.unpaused.difference(revoked)}
        room = self._in_flight_room(self._delivered) - self._asked - 1
        ends: dict[TopicPartition, int] = {}
        messages = _without_errors(self._drain_fetcher.fetch(retained, min(_MAX_POLL_RECORDS, room)), ends, [])
        self._hand_over(messages, ends)

    def _room(self) -> int:
        """Return how many records to ask for: 0 if too many are in flight, until a good part of them is finished.

        A pause drops the records that the client has buffered, and after a resume it takes about a second until more
        arrive. So this first waits for handlers to make room: quick handlers need less than that second.
        """
        deadline = time.monotonic() + _FULL_SECONDS
        # Keep room for 1 record: a partition that is assigned during this poll is not paused yet.
        while (room := self._in_flight_room(self._delivered, much=self._wants_much) - 1) < 1:
            self._wants_much = True
            if self._positions.is_paused or time.monotonic() >= deadline or not self._while_full():
                return 0
            time.sleep(_ROOM_CHECK_SECONDS)
        self._wants_much = False
        self._is_empty = room >= self._max_in_flight - 1
        # The other half is for the temporary consumer of a drain, which can block the call that asks for these.
        return min(_MAX_POLL_RECORDS, room, max(1, self._max_in_flight // 2))

    def _ask(self, count: int, seconds: float) -> list[Message]:
        self._asked = count
        try:
            return self._consume(count, seconds)
        finally:
            self._asked = 0

    def _is_known_end(self, message: Message) -> bool:
        """Return whether this is the end of a partition, right behind the last record that was fetched.

        At a low rate, nearly every answer of the broker has one record, and the end of the partition that had the
        record before it.
        """
        error = message.error()
        if error is None or error.code() != Code.LOCAL_PARTITION_EOF or self._stops is not None:
            return False
        return self._positions.knows_end(tp_of(message), message.offset() or 0)

    def _is_known(self, message: Message) -> bool:
        """Return whether the temporary consumer of a drain has fetched this message before."""
        tp, error = tp_of(message), message.error()
        if tp not in self._drain_fetcher.fetched_here:
            return False
        if error is not None and error.code() != Code.LOCAL_PARTITION_EOF:
            return False
        if tp in self._positions.owned and (message.offset() or 0) < self._positions.position(tp):
            return True
        self._drain_fetcher.fetched_here.discard(tp)  # the main consumer has passed the temporary one's position
        return False

    def _hand_over(self, messages: list[Message], ends: dict[TopicPartition, int]) -> None:
        records: dict[TopicPartition, list[Message]] = {}
        if len(messages) == 1 and not ends and self._stops is None and len(messages[0]) <= self._bounds.small:
            self._hand_over_one(messages)
            return
        # Messages of one partition follow each other, so one step groups many of them.
        for partition, adjacent in groupby(messages, Message.partition):
            for topic, same in self._by_topic(adjacent):
                records.setdefault((topic or "", partition or 0), []).extend(same)
        count = len(messages)
        if self._stops is not None:
            reached = stop_at(self._stops, records, ends, offset_of=_offset_of)
            if reached:
                self._positions.pause(reached)
            count = sum(map(len, records.values()))
        for tp, batch in records.items():
            self._positions.passed(tp, (batch[-1].offset() or 0) + 1)
        # Behind the last record, the end is no news for the dispatcher.
        ends = {tp: offset for tp, offset in ends.items() if self._positions.passed(tp, offset)}
        if records or ends:
            excesses = {tp: found for tp, batch in records.items() if (found := self._excesses(batch))}
            self._delivered.add(count, chain.from_iterable(found.values() for found in excesses.values()))
            # Last, because the dispatcher wakes up now and needs Python's lock.
            self._inbox.put(Fetched(records, ends, excesses))

    def _hand_over_one(self, messages: list[Message]) -> None:
        """As ``_hand_over``, for a single message. At a low rate nearly every poll returns one."""
        (message,) = messages
        tp = tp_of(message)
        self._delivered.add_small()
        self._positions.passed(tp, (message.offset() or 0) + 1)
        self._inbox.put(Fetched({tp: messages}, {}))

    def _excesses(self, batch: list[Message]) -> dict[int, int]:
        # len(message) is the length of its value.
        return self._bounds.excesses(batch, offset_of=_offset_of, size_of=len)

    def _by_topic(self, messages: Iterator[Message]) -> Iterable[tuple[str | None, Iterator[Message]]]:
        return groupby(messages, Message.topic) if self._only_topic is None else [(self._only_topic, messages)]


def _offset_of(message: Message) -> int:
    return message.offset() or 0


def _without_errors(messages: list[Message], ends: dict[TopicPartition, int], errors: list[Message]) -> list[Message]:
    good = []
    for message in messages:
        error = message.error()
        if error is None:
            good.append(message)
        elif error.code() == Code.LOCAL_PARTITION_EOF:
            ends[tp_of(message)] = message.offset() or 0
        else:
            errors.append(message)
    return good
