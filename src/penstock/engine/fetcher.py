"""The fetcher: the one thread that touches the Kafka consumer."""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from queue import Empty, SimpleQueue

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.app import Handler
from penstock.core.lease import Lease
from penstock.core.record import TopicPartition as Place
from penstock.engine.messages import (
    Assigned,
    Commit,
    CommitAnswer,
    Commits,
    Fetched,
    Inbox,
    Left,
    Lost,
    Pause,
    Resume,
    Revoking,
    Rewound,
    Suspended,
    ToFetcher,
    Trouble,
)
from penstock.kafka import make_consumer
from penstock.kafka.failures import is_final, translate

# How long a poll waits for a first record; commands to the fetcher wait as long.
_POLL_SECONDS = 0.05
_FETCH_LIMIT = 4_000
_PATIENCE_SECONDS = 0.25
_ROOM_CHECK_SECONDS = 0.002
_COMMITTED_SECONDS = 10.0
# How much longer than the drain timeout the dispatcher may take to answer a revoke.
_ANSWER_GRACE_SECONDS = 5.0

# The client joins a rebalance in the background, so its generation may be a moment behind the group's.
_PASSING_REFUSALS = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS})
_LAST_COMMIT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)


class Fetcher:
    """Polls without ever waiting for handlers, and between polls carries out what the dispatcher asks for.

    ``in_flight_room`` tells how many more records may be delivered now. A poll asks for no more, so the bound on
    records in flight holds; where no room comes for a while, every partition is paused and polling goes on.
    """

    def __init__(
        self, handler: Handler, inbox: Inbox, *, brokers: str, in_flight_room: Callable[[int], int], lease: Lease
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._brokers = brokers
        self._in_flight_room = in_flight_room
        self._lease = lease
        self._polled = time.monotonic()
        self._doubted = False
        self._commands: SimpleQueue[ToFetcher] = SimpleQueue()
        self._closing = threading.Event()
        self._delivered = 0
        self._wanted_room = 1
        self._owned: set[Place] = set()
        self._slow: set[Place] = set()  # paused one by one, by the dispatcher
        self._paused: set[Place] = set()
        self._consumer: Consumer = make_consumer(
            brokers,
            handler.group,
            settings=handler.settings,
            start=handler.start,
            on_commit=self._on_commit,
            on_error=self._on_error,
        )
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-fetcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, command: ToFetcher) -> None:
        self._commands.put(command)

    def leave(self) -> None:
        """Ask it to give everything back, commit and leave the group; ``join`` waits for that."""
        self._closing.set()

    @property
    def polled(self) -> float:
        """When the last poll returned, by the monotonic clock; read from other threads."""
        return self._polled

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                list(self._handler.consumed_topics),
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )
            while not self._closing.is_set():
                self._carry_out_commands()
                self._fetch()
        except Exception as error:  # noqa: BLE001 - whatever ends this thread must be known to the dispatcher
            doing = f"consuming {', '.join(self._handler.topics)}"
            self._inbox.put(Trouble(translate(error, doing=doing, brokers=self._brokers), fatal=True))
        finally:
            # Closing revokes what is owned, which drains and commits it.
            self._consumer.close()
            self._inbox.put(Left())

    def _fetch(self) -> None:
        room = self._room()
        self._set_pauses(self._owned if room == 0 else self._slow)
        # What is there already first; a call that asks for many waits until it has them all.
        messages = self._consumer.consume(room, 0) if room else []
        if not messages:
            messages = self._consumer.consume(1, _POLL_SECONDS)
        self._renew_lease()
        records: dict[Place, list[Message]] = {}
        ends: dict[Place, int] = {}
        if any(map(Message.error, messages)):
            messages = self._without_errors(messages, ends)
        # Messages of one partition come in stretches, so they are sorted a stretch at a time.
        for partition, stretch in groupby(messages, Message.partition):
            for topic, same in groupby(stretch, Message.topic):
                records.setdefault((topic or "", partition or 0), []).extend(same)
        if records or ends:
            self._delivered += len(messages)
            self._inbox.put(Fetched(records, ends))

    def _renew_lease(self) -> None:
        """This thread is awake and so is its client. If it was not for too long, the dispatcher is to know first."""
        now = time.monotonic()
        if self._lease.renew(now):
            self._doubted = False
        elif not self._doubted:
            self._doubted = True
            self._inbox.put(Suspended(now - self._polled))
        self._polled = now

    def _without_errors(self, messages: list[Message], ends: dict[Place, int]) -> list[Message]:
        good = []
        for message in messages:
            error = message.error()
            if error is None:
                good.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                ends[message.topic() or "", message.partition() or 0] = message.offset() or 0
            else:
                self._on_trouble(error, message)
        return good

    def _room(self) -> int:
        """How many records to ask for: none while too many are in flight, until a good part of them is done.

        Pausing throws away what the client has buffered, so handlers get a moment to make room first.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        # One place is kept back: with no room, a partition that is assigned in this very poll is not paused yet.
        while (room := self._in_flight_room(self._delivered) - 1) < self._wanted_room:
            self._wanted_room = self._handler.max_in_flight // 4
            if self._paused >= self._owned or time.monotonic() >= deadline or not self._commands.empty():
                return 0
            time.sleep(_ROOM_CHECK_SECONDS)
        self._wanted_room = 1
        return min(_FETCH_LIMIT, room)

    def _set_pauses(self, wanted: set[Place]) -> None:
        wanted = wanted & self._owned
        if wanted != self._paused:
            self._consumer.pause(_partitions(wanted - self._paused))
            self._consumer.resume(_partitions(self._paused - wanted))
            self._paused = set(wanted)

    def _carry_out_commands(self) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except Empty:
                return
            if isinstance(command, Commit):
                self._commit(command.commits)
            elif isinstance(command, Pause):
                self._pause(command)
            elif isinstance(command, Resume):
                self._slow.difference_update(command.places)

    def _pause(self, command: Pause) -> None:
        # A partition may have been revoked since the dispatcher asked. Remembered as paused, it would stay so when it
        # is ours again, in an epoch for which nobody asked it.
        places = {place: offset for place, offset in command.places.items() if place in self._owned}
        self._slow.update(places)
        self._set_pauses(self._slow | self._paused)
        rewinds = {place: offset for place, offset in places.items() if offset is not None}
        for (topic, partition), offset in rewinds.items():
            self._consumer.seek(TopicPartition(topic, partition, offset))
        self._inbox.put(Rewound(list(rewinds)))

    def _commit(self, commits: Commits) -> None:
        try:
            self._consumer.commit(offsets=_to_commit(commits), asynchronous=True)
        except KafkaException as error:
            self._inbox.put(CommitAnswer(commits, dict.fromkeys(commits, error.args[0].str())))

    # Callbacks: the client runs them on this thread, inside consume() and close(). After those of a rebalance it
    # assigns and unassigns by itself, as its protocol (eager or cooperative) asks for.

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        refused = {}
        for each in partitions:
            reason = error or each.error
            if reason is not None:
                refused[each.topic, each.partition] = reason.str()
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in partitions}
        self._inbox.put(CommitAnswer(commits, refused))

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        found = consumer.committed(partitions, timeout=_COMMITTED_SECONDS) if partitions else []
        committed = {
            (each.topic, each.partition): (each.offset, each.metadata or "") if each.offset >= 0 else None
            for each in found
        }
        self._owned.update(committed)
        self._inbox.put(Assigned(committed))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = [(each.topic, each.partition) for each in partitions]
        answer: SimpleQueue[Commits] = SimpleQueue()
        self._inbox.put(Revoking(places, answer))
        self._commit_at_last(consumer, self._await(answer))
        self._disown(places)

    def _await(self, answer: "SimpleQueue[Commits]") -> Commits:
        """The dispatcher's answer to a revoke. The partitions that stay are worked on meanwhile."""
        deadline = time.monotonic() + self._handler.drain_timeout + _ANSWER_GRACE_SECONDS
        while time.monotonic() < deadline:
            try:
                return answer.get(timeout=_POLL_SECONDS)
            except Empty:
                self._renew_lease()
        return {}

    def _on_lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = [(each.topic, each.partition) for each in partitions]
        self._inbox.put(Lost(places))
        self._disown(places)

    def _disown(self, places: list[Place]) -> None:
        for owned in (self._owned, self._slow, self._paused):
            owned.difference_update(places)

    def _commit_at_last(self, consumer: Consumer, commits: Commits) -> None:
        """The last commit of an epoch waits for its answer, and is repeated while a rebalance of others refuses it."""
        if not commits:
            return
        for wait in (*_LAST_COMMIT_WAITS, None):
            try:
                done = consumer.commit(offsets=_to_commit(commits), asynchronous=False)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if wait is not None and (reason.retriable() or reason.code() in _PASSING_REFUSALS):
                    time.sleep(wait)
                    continue
                self._inbox.put(CommitAnswer(commits, dict.fromkeys(commits, reason.str())))
            else:
                self._on_commit(None, done)
            return

    def _on_error(self, error: KafkaError) -> None:
        """Trouble with connections: the client goes on trying by itself."""
        doing = f"consuming {', '.join(self._handler.topics)}"
        fatal = is_final(error)
        self._inbox.put(Trouble(translate(KafkaException(error), doing=doing, brokers=self._brokers), fatal=fatal))

    def _on_trouble(self, error: KafkaError, message: Message) -> None:
        """Trouble in place of a record."""
        doing = f"reading {message.topic() or ', '.join(self._handler.topics)}"
        fatal = is_final(error)
        self._inbox.put(Trouble(translate(KafkaException(error), doing=doing, brokers=self._brokers), fatal=fatal))


def _partitions(places: set[Place]) -> list[TopicPartition]:
    return [TopicPartition(*place) for place in places]


def _to_commit(commits: Commits) -> list[TopicPartition]:
    return [TopicPartition(*place, offset, metadata) for place, (offset, metadata) in commits.items()]
