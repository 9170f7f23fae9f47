"""The fetcher: the only thread that uses the Kafka consumer."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.core.progress.lease import Lease
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import Rebalance
from penstock.engine.dispatch.thread_messages import (
    Commit,
    EngineError,
    Inbox,
    Left,
    Pause,
    Resume,
    Rewound,
    Seek,
    StartOver,
    Suspended,
    ToFetcher,
    TopicsRecreated,
)
from penstock.engine.fetch.commit_connection import CommitConnection, open_commit_connection
from penstock.engine.fetch.commit_sender import CommitSender
from penstock.engine.fetch.consumer_errors import (
    StartOverError,
    is_final_while_running,
    raise_if_final,
    to_report,
)
from penstock.engine.fetch.drain_fetcher import DrainFetcher
from penstock.engine.fetch.owned_consumer import OwnedConsumer
from penstock.engine.fetch.record_poller import InFlightRoom, RecordPoller
from penstock.engine.fetch.start_positions import KnownPartitions, find_new_position
from penstock.engine.fetch.store_session import StoreSession
from penstock.engine.membership.native_membership import NativeMembership, OnGone
from penstock.engine.produce.dry_run import DryCommitter
from penstock.engine.produce.transactor import Transactor
from penstock.errors import PenstockError, ServerError, StoreError
from penstock.kafka import buffer_settings, make_consumer, member_settings, reader_settings
from penstock.kafka.client.message_records import tp_of
from penstock.kafka.error_codes import OUT_OF_RANGE, Code

# The wait before a broken consumer is replaced. It doubles after each failure.
_FIRST_REBUILD_SECONDS = 1.0
_MAX_REBUILD_SECONDS = 30.0


class Fetcher:
    """Polls, and runs the dispatcher's commands between polls. It never waits for handlers.

    Other threads call ``ask``, ``leave``, ``polled``, ``member_id`` and ``join``; the rest runs on the fetcher thread.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        *,
        brokers: str,
        in_flight_room: InFlightRoom,
        lease: Lease,
        known_partitions: KnownPartitions | None = None,
        number: int = 0,
        transactor: Transactor | None = None,
        store_session: StoreSession | None = None,
        on_rebalance: Callable[[Rebalance], None] | None = None,
        on_gone: OnGone = lambda _tps: None,
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._brokers = brokers
        self._lease = lease
        self._polled = time.monotonic()
        self._is_suspended = False
        self._known_partitions = known_partitions or KnownPartitions()
        self._number = number
        self._on_rebalance = on_rebalance or (lambda _: None)
        self._on_gone = on_gone
        self._commands: SimpleQueue[ToFetcher] = SimpleQueue()
        self._deferred = deque[ToFetcher]()  # those that waited for the end of a drain; older than all in the queue
        self._closing = threading.Event()
        self._ended = False  # True if the thread ended cleanly or has reported its error to the dispatcher
        self._member_id: str | None = None
        self._commit_connection: CommitConnection | None = None
        self._poller = RecordPoller(handler, inbox, in_flight_room=in_flight_room, while_full=self._while_full)
        self._rebuild_seconds = _FIRST_REBUILD_SECONDS
        self._commit_sender = CommitSender(
            inbox,
            transactor,
            ahead=handler.is_at_most_once,
            store_session=store_session,
            is_member=not handler.partitions,
        )
        self._store_session = store_session
        # Made here, so that a setting that the client refuses fails before anything starts.
        self._consumer = self._make_consumer()
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-fetcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, command: ToFetcher) -> None:
        self._commands.put(command)

    def leave(self) -> None:
        """Ask the fetcher to drain and commit all partitions and leave the group; ``join`` waits for that."""
        self._closing.set()

    @property
    def polled(self) -> float:
        """When the last poll returned, by the monotonic clock; read from other threads."""
        return self._polled

    @property
    def member_id(self) -> str | None:
        """The member's id with the consumer protocol, where the client chooses it; read from other threads."""
        return self._member_id

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    # The thread.

    def _run(self) -> None:
        mark_engine_thread()  # on_assigned, on_revoked and on_lost run here
        try:
            while True:
                try:
                    self._consume()
                except (KafkaException, StartOverError, StoreError) as error:
                    self._drop_consumer(error)
                else:
                    self._ended = True
                    return
                # If the fetcher is asked to leave now, it owns no partitions and has nothing to commit.
                if self._closing.wait(self._rebuild_seconds):
                    self._ended = True
                    return
                self._rebuild_seconds = min(2 * self._rebuild_seconds, _MAX_REBUILD_SECONDS)
                self._consumer = self._make_consumer()
        except Exception as error:  # noqa: BLE001 - the dispatcher must know of any error that ends this thread
            self._report(error, fatal=True)
            self._ended = True
        finally:
            if not self._ended:
                # The client can raise a KafkaError, which is not an exception. That must not look like a clean end.
                problem = f"The fetcher thread of handler {self._handler.name} ended with an unknown error."
                hint = "No records were lost. Start the app again."
                self._inbox.put(EngineError(ServerError(problem, hint=hint), fatal=True))
            self._inbox.put(Left())

    def _consume(self) -> None:
        """Consume with one consumer until ``leave`` is called; raise if that consumer is broken."""
        self._consumer.adopt()
        self._commit_connection = open_commit_connection(
            self._handler, self._consumer, self._brokers, answered=self._commit_sender.answered
        )
        self._membership = self._make_membership()
        self._positions = self._membership.positions
        self._poller.begin(self._consumer, self._positions, DrainFetcher(self._make_drain_consumer))
        try:
            self._membership.join()
            if self._handler.protocol == "consumer":
                self._member_id = self._consumer.memberid()
            while not self._closing.is_set():
                self._carry_out_commands()
                self._membership.attend()
                self._check_claims()
                self._positions.retry_seeks()
                self._fetch()
            self._membership.leave()
        except (KafkaException, StartOverError, StoreError):
            raise
        except BaseException:
            self._membership.abandon()
            raise
        finally:
            self._poller.end()
            if self._commit_connection is not None:
                self._commit_connection.close()

    def _make_membership(self) -> NativeMembership:
        parts: dict[str, Any] = {
            "commit_sender": self._commit_sender,
            "known_partitions": self._known_partitions,
            "store_session": self._store_session,
            "during_drain": self._during_drain,
            "on_rebalance": self._on_rebalance,
            "on_gone": self._on_gone,
        }
        if not self._handler.is_self_managed:
            membership = NativeMembership(self._handler, self._inbox, self._consumer, **parts)
            if self._handler.is_dry_run:
                membership.committer = DryCommitter(self._commit_sender.on_commit)
            elif self._commit_connection is not None:
                membership.committer = self._commit_connection
            return membership
        # Imported here because it needs kafka-python, an optional dependency.
        from penstock.engine.membership.self_managed_membership import SelfManagedMembership  # noqa: PLC0415

        return SelfManagedMembership(
            self._handler, self._inbox, self._consumer, number=self._number, brokers=self._brokers, **parts
        )

    def _during_drain(self, revoked: Sequence[TopicPartition]) -> None:
        """Runs every few milliseconds while a revoke of these partitions drains and blocks the poll."""
        self._renew_lease()
        self._poller.fetch_during_drain(revoked)
        self._commit_sender.authorize(self._membership.committer)
        # Without this, a kill would repeat records that finish now, and at-most-once records would wait for their
        # commit.
        self._carry_out_commits()

    def _drop_consumer(self, error: KafkaException | StartOverError | StoreError) -> None:
        """Drop the consumer and its partitions; raise if a new consumer would fail in the same way."""
        self._membership.abandon()
        self._commit_sender.abandon("the consumer broke before the broker answered")
        self._deferred.clear()
        while not self._commands.empty():
            command = self._commands.get_nowait()
            if isinstance(command, Commit):
                self._commit_sender.refuse(command.commits, "the consumer broke before it was sent")
        raise_if_final(error, self._handler)
        self._report(error, fatal=False)

    def _make_consumer(self) -> OwnedConsumer:
        handler = self._handler
        return OwnedConsumer(
            make_consumer(
                self._brokers,
                handler.group,
                settings={**buffer_settings(handler), **handler.named_settings},
                member=member_settings(handler, self._number),
                # The client must not reset silently: Penstock reports the records that a reset skips.
                reset="error",
                on_commit=self._on_commit,
                on_error=self._on_error,
                on_statistics=None if handler.is_self_managed or handler.partitions else self._on_statistics,
            )
        )

    def _make_drain_consumer(self) -> Consumer:
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
        errors = self._poller.take(messages)
        if len(errors) < len(messages):
            self._rebuild_seconds = _FIRST_REBUILD_SECONDS
        # After the records: the dispatcher must get the records that came before an error first.
        for message in errors:
            self._on_error_message(message)

    def _renew_lease(self) -> None:
        """Renew the lease after a poll. After too long a gap the lease is over, and the dispatcher gets Suspended."""
        now = time.monotonic()
        if self._lease.renew(now):
            self._is_suspended = False
        elif not self._is_suspended:
            self._is_suspended = True
            self._inbox.put(Suspended(now - self._polled))
        self._polled = now

    def _while_full(self) -> bool:
        """Run commands while too many records are in flight; return False to stop waiting for room."""
        self._carry_out_commands()
        return not self._closing.is_set()

    # Commands.

    def _carry_out_commands(self) -> None:
        self._commit_sender.attend(self._membership.committer)
        while self._deferred or not self._commands.empty():
            command = self._deferred.popleft() if self._deferred else self._commands.get_nowait()
            match command:
                case Commit():
                    self._commit_sender.commit(self._membership.committer, command)
                case Pause():
                    self._pause(command)
                case Resume(tps, assignments):
                    self._positions.resume(self._commit_sender.still_owned(tps, assignments))
                case Seek():
                    self._seek(command)
                case TopicsRecreated(tps):
                    self._renew(tps)
                case StartOver(error):
                    self._start_over(error)

    def _check_claims(self) -> None:
        """Claim partitions again that the store gives to another member, although the group gives them to this one.

        If the group had given them to another member, this one would know it after a session at the latest.
        """
        if self._store_session is None:
            return
        if tp := self._store_session.take_overtaken(self._lease.seconds):
            problem = f"The store has a claim of {tp[0]}[{tp[1]}] by a member that does not own it."
            self._start_over(StoreError(problem, hint="Nothing to do: this member joins again and claims it."))

    def _start_over(self, error: PenstockError) -> None:
        if not self._membership.start_over(seconds=self._rebuild_seconds):
            raise StartOverError(error)
        self._rebuild_seconds = min(2 * self._rebuild_seconds, _MAX_REBUILD_SECONDS)
        self._report(error, fatal=False)

    def _carry_out_commits(self) -> None:
        """Run only the commits, and wait for each: inside a callback, the client delivers no commit answers."""
        with suppress(Empty):
            while True:
                command = self._commands.get_nowait()
                if isinstance(command, Commit):
                    self._commit_sender.commit(self._membership.committer, command, wait=True)
                else:
                    self._deferred.append(command)

    def _seek(self, command: Seek) -> None:
        tps = self._commit_sender.still_owned(command.offsets, command.assignments)
        if command.recreated:
            self._on_gone(tps)
            if self._store_session is not None:
                self._store_session.forget(tps)
        self._positions.resume(tps)
        for tp in tps:
            self._positions.reassign_at(tp, command.offsets[tp])

    def _pause(self, command: Pause) -> None:
        # A partition may have been revoked since the dispatcher asked, and assigned again. Its new epoch begins at the
        # commit, which may be lower than the offset: to seek there would skip records.
        tps = self._commit_sender.still_owned(command.tps, command.assignments)
        self._positions.pause(tps)
        rewinds = {tp: offset for tp in tps if (offset := command.tps[tp]) is not None}
        for tp, offset in rewinds.items():
            self._positions.seek(tp, offset)
        self._inbox.put(Rewound(list(rewinds)))

    def _renew(self, tps: Sequence[TopicPartition]) -> None:
        """Restart partitions of recreated topics. The client notices that only while the new log is shorter."""
        for tp in self._positions.owned.intersection(tps):
            position = self._positions.position(tp)
            if position > 0:
                # Fetch nothing until the dispatcher has finished the old log and sends Seek.
                self._positions.pause([tp])
                self._inbox.put(find_new_position(self._consumer, self._handler, tp, position))

    # Errors.

    def _on_error(self, error: KafkaError) -> None:
        """The client's callback for connection errors. The client retries unless the error is final."""
        self._report(KafkaException(error), fatal=is_final_while_running(error))

    def _on_error_message(self, message: Message) -> None:
        """Handle an error that a poll returned in place of a record."""
        error, tp = message.error(), tp_of(message)
        if error is None:
            return
        if error.code() in OUT_OF_RANGE:
            if tp in self._positions.owned:
                self._inbox.put(find_new_position(self._consumer, self._handler, tp, message.offset() or 0))
        elif error.fatal() or error.code() == Code.LOCAL_FATAL:
            raise KafkaException(error)
        else:
            doing = f"reading {message.topic() or self._handler.source}"
            self._report(KafkaException(error), fatal=is_final_while_running(error), doing=doing)

    def _report(self, error: BaseException, *, fatal: bool, doing: str = "") -> None:
        found = to_report(error, self._handler, brokers=self._brokers, fatal=fatal, doing=doing)
        self._inbox.put(EngineError(found, fatal=fatal))
