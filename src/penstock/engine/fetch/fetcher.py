"""The fetcher: the one thread that touches the Kafka consumer."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.core.progress.lease import Lease
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import Rebalance
from penstock.engine.dispatch.thread_messages import (
    Commit,
    EngineError,
    Inbox,
    Left,
    Pause,
    Renew,
    Resume,
    Rewound,
    Seek,
    StartOver,
    Suspended,
    ToFetcher,
)
from penstock.engine.fetch.commit_connection import CommitConnection, open_commit_connection
from penstock.engine.fetch.commit_sender import CommitSender
from penstock.engine.fetch.drain_fetcher import DrainFetcher
from penstock.engine.fetch.owned_consumer import OwnedConsumer
from penstock.engine.fetch.record_poller import InFlightRoom, RecordPoller, tp_of
from penstock.engine.fetch.start_positions import FirstTimes, find_new_position
from penstock.engine.fetch.store_session import StoreSession
from penstock.engine.membership.native_membership import Membership
from penstock.engine.produce.transactor import Transactor
from penstock.errors import PenstockError, ServerError, StoreError, TopicError
from penstock.kafka import buffer_settings, make_consumer, member_settings, reader_settings
from penstock.kafka.errors import is_final, kafka_error, translate

# How long to wait before a broken consumer is replaced: so long at first, twice as long after each failure.
_FIRST_REBUILD_SECONDS = 1.0
_MOST_REBUILD_SECONDS = 30.0

# Topics are there when the app starts. One that goes away later may come back, and the group then assigns it again.
# And what is fatal for a consumer is not for the next one.
_PASSING_CODES = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._FATAL})  # noqa: SLF001
# Two members with one static id would fence each other for ever. A fatal error has its cause only in its text.
_FENCED = KafkaError(KafkaError.FENCED_INSTANCE_ID).str()
# Only with the new protocol: there the older member of that static id stays.
_UNRELEASED = KafkaError(KafkaError.UNRELEASED_INSTANCE_ID).str()
# The log does not have the offset that was asked for, or not any more.
_OUT_OF_RANGE_CODES = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION}  # noqa: SLF001
)


class StartOverError(Exception):
    """The consumer is to be replaced, and all that it owned taken anew."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(str(error))
        self.error = error


class Fetcher:
    """Polls without ever waiting for handlers, and between polls carries out what the dispatcher asks for."""

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        *,
        brokers: str,
        in_flight_room: InFlightRoom,
        lease: Lease,
        first_times: FirstTimes | None = None,
        number: int = 0,
        transactor: Transactor | None = None,
        store_session: StoreSession | None = None,
        tell: Callable[[Rebalance], None] | None = None,
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._brokers = brokers
        self._lease = lease
        self._polled = time.monotonic()
        self._doubted = False
        self._first_times = first_times or FirstTimes()
        self._number = number
        self._tell = tell or (lambda _: None)
        self._commands: SimpleQueue[ToFetcher] = SimpleQueue()
        self._closing = threading.Event()
        self._ended = False  # in a way that the dispatcher knows of
        self._member_id: str | None = None
        self._commit_connection: CommitConnection | None = None
        self._poller = RecordPoller(handler, inbox, in_flight_room=in_flight_room, meanwhile=self._meanwhile)
        self._rebuild_seconds = _FIRST_REBUILD_SECONDS
        self._commit_sender = CommitSender(
            inbox,
            transactor,
            ahead=handler.is_at_most_once,
            store_session=store_session,
            is_member=not handler.partitions,
        )
        self._store_session = store_session
        # Made here, so that a setting that the client refuses is known before anything starts.
        self._consumer = self._make_consumer()
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
    def member_id(self) -> str | None:
        """The member's id in a group of the new protocol, where the client chooses it; read from other threads."""
        return self._member_id

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    # The thread.

    def _run(self) -> None:
        try:
            while True:
                try:
                    self._consume()
                except (KafkaException, StartOverError, StoreError) as error:
                    self._break_off(error)
                else:
                    self._ended = True
                    return
                # Asked to leave meanwhile, there is nothing left to give back.
                if self._closing.wait(self._rebuild_seconds):
                    self._ended = True
                    return
                self._rebuild_seconds = min(2 * self._rebuild_seconds, _MOST_REBUILD_SECONDS)
                self._consumer = self._make_consumer()
        except Exception as error:  # noqa: BLE001 - whatever ends this thread must be known to the dispatcher
            self._report(error, fatal=True)
            self._ended = True
        finally:
            if not self._ended:
                # The client raises things that are no exceptions; an end by one of them must not look like a clean one.
                problem = f"The thread that fetches for handler {self._handler.name} broke down."
                self._inbox.put(EngineError(ServerError(problem, hint="Nothing was lost: start again."), fatal=True))
            self._inbox.put(Left())

    def _consume(self) -> None:
        """With one consumer, until it is to leave; raises where that consumer is of no more use."""
        self._consumer.adopt()
        self._commit_connection = open_commit_connection(
            self._handler, self._consumer, self._brokers, answered=self._commit_sender.answered
        )
        self._membership = self._make_membership()
        self._positions = self._membership.positions
        self._poller.begin(self._consumer, self._positions, DrainFetcher(self._make_relief))
        try:
            self._membership.join()
            if self._handler.protocol == "consumer":
                self._member_id = self._consumer.memberid()
            while not self._closing.is_set():
                self._carry_out_commands()
                self._membership.attend()
                self._positions.unstick()
                self._fetch()
            self._membership.leave()
        except (KafkaException, StartOverError, StoreError):
            raise
        except BaseException:
            self._membership.break_off()
            raise
        finally:
            self._poller.end()
            if self._commit_connection is not None:
                self._commit_connection.close()

    def _make_membership(self) -> Membership:
        parts: dict[str, Any] = {
            "committer": self._commit_sender,
            "first_times": self._first_times,
            "keeper": self._store_session,
            "stay_awake": self._stay_awake,
            "tell": self._tell,
        }
        if not self._handler.is_open:
            membership = Membership(self._handler, self._inbox, self._consumer, **parts)
            if self._commit_connection is not None:
                membership.commits_as = self._commit_connection
            return membership
        # Imported here because it needs a library that nobody else does.
        from penstock.engine.membership.self_managed_membership import SelfManagedMembership  # noqa: PLC0415

        return SelfManagedMembership(
            self._handler, self._inbox, self._consumer, number=self._number, brokers=self._brokers, **parts
        )

    def _stay_awake(self, going: Sequence[TopicPartition]) -> None:
        """While a revoke of these drains."""
        self._renew_lease()
        self._poller.relieve(going)
        self._commit_sender.authorize(self._membership.commits_as)
        # What is finished meanwhile would be repeated after a kill, and what is committed ahead waits for its commit.
        self._carry_out_commits()

    def _break_off(self, error: KafkaException | StartOverError | StoreError) -> None:
        """Let go of the consumer and all that it owned; raises where a new one would fare no better."""
        self._membership.break_off()
        self._commit_sender.abandon("the consumer broke before the broker answered")
        while not self._commands.empty():
            command = self._commands.get_nowait()
            if isinstance(command, Commit):
                self._commit_sender.refuse(command.commits, "the consumer broke before it was sent")
        inner = kafka_error(error)
        if inner is not None and _FENCED in inner.str():
            raise ServerError(
                f"Another member of group {self._handler.group!r} has the static_id {self._handler.static_id!r}.",
                hint="Give each process its own static_id, and stop the one that took this place.",
            )
        if inner is not None and _UNRELEASED in inner.str():
            raise ServerError(
                f"The broker still counts another member of group {self._handler.group!r} with the static_id "
                f"{self._handler.static_id!r}.",
                hint="If that process was killed, start again after its session timeout (consumer.session.timeout.ms "
                "of the group, 45 s by default). If it runs, give each process its own static_id.",
            )
        if inner is not None and _is_final(inner):
            raise error
        self._report(error, fatal=False)

    def _make_consumer(self) -> OwnedConsumer:
        handler = self._handler
        return OwnedConsumer(
            make_consumer(
                self._brokers,
                handler.group,
                settings={**buffer_settings(handler), **handler.named_settings},
                member=member_settings(handler, self._number),
                # Never by itself: what is passed over has to be known.
                reset="error",
                on_commit=self._on_commit,
                on_error=self._on_error,
                on_statistics=None if handler.is_open or handler.partitions else self._on_statistics,
            )
        )

    def _make_relief(self) -> Consumer:
        handler = self._handler
        member = reader_settings(handler)
        settings = {**buffer_settings(handler), **handler.named_settings}
        return make_consumer(self._brokers, handler.group, settings=settings, member=member, reset="error")

    def _on_commit(self, error: KafkaError | None, partitions: Sequence[KafkaTopicPartition]) -> None:
        """The client's callback."""
        if self._commit_connection is not None:
            self._commit_connection.client_answered()
        self._commit_sender.on_commit(error, partitions)

    def _on_statistics(self, text: str) -> None:
        """The client's callback."""
        self._membership.on_statistics(text)

    # Fetching.

    def _fetch(self) -> None:
        messages = self._poller.poll()
        self._renew_lease()
        troubles = self._poller.take(messages)
        if len(troubles) < len(messages):
            self._rebuild_seconds = _FIRST_REBUILD_SECONDS
        # Told last: what came before a trouble counts before it.
        for message in troubles:
            self._on_trouble(message)

    def _renew_lease(self) -> None:
        """This thread is awake and so is its client. If it was not for too long, the dispatcher is to know first."""
        now = time.monotonic()
        if self._lease.renew(now):
            self._doubted = False
        elif not self._doubted:
            self._doubted = True
            self._inbox.put(Suspended(now - self._polled))
        self._polled = now

    def _meanwhile(self) -> bool:
        """What is done while there is no room for more records; whether there is any use in waiting for some."""
        self._carry_out_commands()
        return not self._closing.is_set()

    # Commands.

    def _carry_out_commands(self) -> None:
        self._commit_sender.attend(self._membership.commits_as)
        while True:
            try:
                command = self._commands.get_nowait()
            except Empty:
                return
            match command:
                case Commit():
                    self._commit_sender.commit(self._membership.commits_as, command)
                case Pause():
                    self._pause(command)
                case Resume(tps):
                    self._positions.speed_up(tps)
                case Seek():
                    self._seek(command)
                case Renew(tps):
                    self._renew(tps)
                case StartOver(error):
                    self._start_over(error)

    def _start_over(self, error: PenstockError) -> None:
        if not self._membership.start_over(seconds=self._rebuild_seconds):
            raise StartOverError(error)
        self._rebuild_seconds = min(2 * self._rebuild_seconds, _MOST_REBUILD_SECONDS)
        self._report(error, fatal=False)

    def _carry_out_commits(self) -> None:
        """Inside a callback of the client, which serves no answers there: so each commit waits for its own."""
        others: list[ToFetcher] = []
        with suppress(Empty):
            while True:
                command = self._commands.get_nowait()
                if isinstance(command, Commit):
                    self._commit_sender.commit(self._membership.commits_as, command, wait=True)
                else:
                    others.append(command)
        for command in others:
            self._commands.put(command)

    def _seek(self, command: Seek) -> None:
        if command.anew and self._store_session is not None:
            self._store_session.forget(command.offsets)
        self._positions.speed_up(command.offsets)
        for tp, offset in command.offsets.items():
            self._positions.go_on(tp, offset)

    def _pause(self, command: Pause) -> None:
        self._positions.slow_down(command.tps)
        # A partition may have been revoked since the dispatcher asked.
        owned = self._positions.owned
        rewinds = {p: offset for p, offset in command.tps.items() if offset is not None and p in owned}
        for tp, offset in rewinds.items():
            self._positions.go_back(tp, offset)
        self._inbox.put(Rewound(list(rewinds)))

    def _renew(self, tps: Sequence[TopicPartition]) -> None:
        """What the client would only notice where the new log is still shorter than the old one was."""
        for tp in self._positions.owned.intersection(tps):
            position = self._positions.position(tp)
            if position > 0:
                # Nothing more may come until the dispatcher is through with the old log, and says Seek.
                self._positions.slow_down([tp])
                self._inbox.put(find_new_position(self._consumer, self._handler, tp, position))

    # Trouble.

    def _on_error(self, error: KafkaError) -> None:
        """Trouble with connections, from the client's callback: it goes on trying by itself, unless that is useless."""
        self._report(KafkaException(error), fatal=_is_final(error))

    def _on_trouble(self, message: Message) -> None:
        """Trouble in place of a record."""
        error, tp = message.error(), tp_of(message)
        if error is None:
            return
        if error.code() in _OUT_OF_RANGE_CODES:
            if tp in self._positions.owned:
                self._inbox.put(find_new_position(self._consumer, self._handler, tp, message.offset() or 0))
        elif error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001
            raise KafkaException(error)
        else:
            doing = f"reading {message.topic() or self._handler.source}"
            self._report(KafkaException(error), fatal=_is_final(error), doing=doing)

    def _report(self, error: BaseException, *, fatal: bool, doing: str = "") -> None:
        if isinstance(error, StartOverError):
            error = error.error
        if not isinstance(error, PenstockError):
            error = translate(error, doing=doing or f"consuming {self._handler.source}", brokers=self._brokers)
        if isinstance(error, TopicError) and not fatal:
            # It was there when the app started.
            error = TopicError(
                f"A topic that the app consumes is gone, most likely deleted: {error.problem}",
                hint="Once it is recreated, its new records are consumed from where start= says.",
            )
        self._inbox.put(EngineError(error, fatal=fatal))


def _is_final(error: KafkaError) -> bool:
    return error.code() not in _PASSING_CODES and is_final(error)
