"""A member of a consumer group: the threads that consume for one handler."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from penstock.app import Handler
from penstock.app.dispatching.reporter import Reporter
from penstock.app.runs.live_command import HandlerState, LiveCommand
from penstock.core.progress.lease import Lease
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.engine.dispatch.dispatcher import Dispatcher
from penstock.engine.dispatch.finished_works import FinishedWorks, are_all_awaited
from penstock.engine.dispatch.manual_ack import with_ack
from penstock.engine.dispatch.thread_messages import (
    AckedBelow,
    Ask,
    Inbox,
    PartitionState,
    Stop,
    TopicsRecreated,
)
from penstock.engine.fetch.fetcher import Fetcher
from penstock.engine.fetch.start_positions import KnownPartitions
from penstock.engine.fetch.store_session import open_store_session
from penstock.engine.membership.catch_up import CatchUp
from penstock.engine.observe.health import Health
from penstock.engine.observe.member_activity import MemberActivity
from penstock.engine.observe.member_metrics import MemberMetrics
from penstock.engine.produce.dry_run import DryOutbox
from penstock.engine.produce.outbox import Outbox
from penstock.engine.produce.transactor import Transactor
from penstock.engine.workers.worker_pools import Workers, make_workers
from penstock.errors import CallbackError
from penstock.kafka import MESSAGES, Cluster, make_alone_producer, make_producer
from penstock.kafka.client.message_records import tp_of
from penstock.kafka.client.output_topics import OutputTopicFacts
from penstock.kafka.client.transactions import Transaction, transactional_id
from penstock.paths import seen_ids_file
from penstock.stores.seen_ids import LocalSeenIds, open_seen_ids

T = TypeVar("T")

_JOIN_SECONDS = 10.0
# How long to wait for an answer before checking that the dispatcher thread is alive.
_PROGRESS_SECONDS = 0.2
_NUMBERS = count(1)
# Kafka's defaults.
_SESSION_TIMEOUT_MS = 45_000
_HEARTBEAT_MS = {"classic": 3_000, "consumer": 5_000}
# The largest delay of a heartbeat that the lease allows for.
_LATE_HEARTBEAT_MS = 500
# The broker aborts a killed member's transaction after this time. Until then, read-committed readers wait.
_TRANSACTION_TIMEOUT_MS = 10_000


def session_seconds(handler: Handler) -> float:
    """Return how long the broker waits for a heartbeat before it removes a member of this handler."""
    return float(handler.settings.get("session.timeout.ms", _SESSION_TIMEOUT_MS)) / 1000


def lease_seconds(handler: Handler) -> float:
    """Return how long after a poll a member may assume that it still owns its partitions.

    The session begins with the last heartbeat, which may be one heartbeat interval older than the last poll.
    """
    session = session_seconds(handler) * 1000
    heartbeat = float(handler.settings.get("heartbeat.interval.ms", _HEARTBEAT_MS[handler.protocol]))
    return max(session / 2, session - heartbeat - _LATE_HEARTBEAT_MS) / 1000


@dataclass(frozen=True)
class SharedState:
    """State that the members of one handler in one process share."""

    catch_up: CatchUp = field(default_factory=CatchUp)
    known_partitions: KnownPartitions = field(default_factory=KnownPartitions)


class HandlerMember:
    """Call ``start``, then ``stop`` (twice is fine), then ``join``.

    ``error`` is then the reason of a failure, if any.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        brokers: str,
        emit: Callable[[Event], None],
        per_record: bool,
        until: Mapping[TopicPartition, int] | None,
        shared: SharedState | None = None,
        number: int = 0,
    ) -> None:
        shared = shared or SharedState()
        self.handler = self._handler = handler
        self._inbox: Inbox = SimpleQueue()
        self._adapter = with_ack(MESSAGES, self._inbox) if handler.commit == "manual" else MESSAGES
        self._store_session = open_store_session(handler)
        if self._store_session is not None:
            begin = self._store_session.transactions(tp_of, self._adapter.offset_of)
            self._adapter = replace(self._adapter, begin=begin)
        deduped = [route for route in handler.routes if route.dedupe is not None]
        if self._store_session is not None and any(route.signature.takes_transaction for route in deduped):
            self._adapter = replace(self._adapter, remember=self._store_session.rememberer())
        if any(not route.signature.takes_transaction for route in deduped):
            self._adapter = replace(self._adapter, ids_of=_opened_ids(deduped))
        self._name = f"{socket.gethostname()}-{os.getpid()}-{next(_NUMBERS)}"
        self._reporter = Reporter(handler, emit, member=self._name, adapter=self._adapter, per_record=per_record)
        self._lease = Lease(lease_seconds(handler))
        self._finished_works = FinishedWorks(
            self._inbox,
            are_all_awaited=are_all_awaited(handler, per_record=per_record, runs_to_an_end=until is not None),
        )
        self._dispatcher = Dispatcher(
            handler,
            self._inbox,
            self._reporter,
            adapter=self._adapter,
            lease=self._lease,
            until=until,
            catch_up=shared.catch_up,
            finished_works=self._finished_works,
            partitions=lambda: shared.known_partitions.count,
        )
        self._transactor = None
        if handler.is_exactly_once:
            name = _transactional_id(handler, self._name, number)
            make = partial(_make_transaction, brokers, name, handler)
            # An admin client for each question: questions are rare, and a client has threads and connections.
            ask = partial(Cluster, brokers, handler.settings)
            facts = OutputTopicFacts(
                handler.written_topics,
                read_limits=lambda topics: ask().largest_batches(topics),
                count_partitions=lambda topics: ask().require_topics(topics),
            )
            self._transactor = Transactor(make, facts, self._inbox, brokers=brokers)
        self._fetcher = Fetcher(
            handler,
            self._inbox,
            brokers=brokers,
            in_flight_room=self._dispatcher.in_flight_room,
            lease=self._lease,
            known_partitions=shared.known_partitions,
            number=number,
            transactor=self._transactor,
            store_session=self._store_session,
            on_rebalance=self._reporter.rebalanced,
            on_gone=self._on_gone,
        )
        self._workers: Workers | None = None
        self._closing_problem: CallbackError | None = None
        self._brokers = brokers
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-dispatcher", daemon=True)
        self._crash: BaseException | None = None

    def prepare(self, stop: threading.Event) -> None:
        """Make the workers and what they need before anything is consumed; then call ``start`` or ``discard``.

        Raises what a resource raises.
        """
        try:
            self._workers = self._make_workers(stop)
        except CallbackError as error:
            self._reporter.error(error, fatal=True)
            raise

    def _make_workers(self, stop: threading.Event | None = None) -> Workers:
        return make_workers(
            self._handler, self._inbox, self._adapter, self._lease, stop, finished_works=self._finished_works
        )

    def discard(self) -> None:
        """Close the workers of a member that does not start, because another one cannot."""
        if self._workers is not None:
            self._close(self._workers)

    def start(self, lag: int, topics: tuple[str, ...]) -> None:
        self._reporter.started(lag, topics)
        self._thread.start()

    def stop(self, reason: str) -> None:
        self._inbox.put(Stop(reason))

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """Return the progress of each owned partition; {} if the member has stopped. Call it from any thread."""
        return self._ask(self._dispatcher.survey, {})

    @property
    def control_state(self) -> HandlerState:
        """What commands have changed. Read it from any thread."""
        control = self._dispatcher.control
        return self._ask(lambda: control.state, HandlerState(handler=self._handler.name, group=self._handler.group))

    def carry_out(self, command: LiveCommand) -> None:
        """Carry out a checked command, from any thread. When it returns, the command is in force."""
        self._ask(partial(self._dispatcher.control.carry_out, command), None)

    def activity(self) -> MemberActivity | None:
        """Return what it does now; None if the member has stopped. Call it from any thread."""
        breaker = self.breaker_problem
        return self._ask(lambda: self._dispatcher.view.activity(breaker), None)

    def _ask(self, question: Callable[[], T], if_stopped: T) -> T:
        """Let the dispatcher's thread answer."""
        answer: SimpleQueue[T] = SimpleQueue()
        self._inbox.put(Ask(question, answer))
        while self._thread.is_alive():
            with suppress(Empty):
                return answer.get(timeout=_PROGRESS_SECONDS)
        return if_stopped

    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._inbox.put(AckedBelow(offsets))

    def renew(self, tps: Sequence[TopicPartition]) -> None:
        """Start these partitions again, because their topics were recreated. Call it from any thread."""
        self._fetcher.ask(TopicsRecreated(tps))

    def join(self, timeout: float) -> bool:
        """Wait for the member to stop; return whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        return self._crash or self._dispatcher.error or self._closing_problem

    @property
    def has_joined(self) -> bool:
        """Whether the member has had its first assignment, which may be empty. Read it from any thread."""
        return self._dispatcher.has_joined

    @property
    def has_shared_rate(self) -> bool:
        """Whether it divides a rate with others of the group, which a command may change. Read it from any thread."""
        return self._dispatcher.rate.is_shared

    def ping_store(self) -> None:
        """Raise a StoreError if the offset store cannot be used now. Call it from any thread; it may wait long."""
        if self._store_session is not None:
            self._store_session.ping()

    @property
    def id_in_group(self) -> str | None:
        """The member id with the consumer protocol, after the first join request. Read it from any thread."""
        return self._fetcher.member_id

    def health(self) -> Health:
        """Call it from any thread."""
        finished, in_flight, longest = self._dispatcher.view.health()
        return Health(
            handler=self._handler.name,
            group=self._handler.group,
            member=self._name,
            polled_seconds_ago=round(time.monotonic() - self._fetcher.polled, 3),
            finished_seconds_ago=None if finished is None else round(finished, 3),
            in_flight=in_flight,
            longest=longest,
            breaker=self._dispatcher.breaker.problem(),
        )

    @property
    def breaker_problem(self) -> str | None:
        """Why the breaker pauses the handler; None while it does not. Read it from any thread."""
        return self._dispatcher.breaker.problem()

    def member_metrics(self) -> MemberMetrics:
        """Call it from any thread."""
        _, in_flight, longest = self._dispatcher.view.health()
        lanes, works, map_bytes = self._dispatcher.view.load()
        return MemberMetrics(
            handler=self._handler.name,
            group=self._handler.group,
            in_flight=in_flight,
            lanes=lanes,
            works=works,
            concurrency=self._dispatcher.concurrency.limit,
            open_breakers=int(self._dispatcher.breaker.is_open),
            waiting_for_rate=self._dispatcher.rate.waiting,
            one_per_partition=self._handler.order == "partition",
            polled_seconds_ago=time.monotonic() - self._fetcher.polled,
            longest_seconds=max((each.seconds for each in longest), default=0.0),
            map_bytes=map_bytes,
            watches=self._dispatcher.watches,
        )

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                if self._store_session is not None:
                    stack.callback(self._store_session.close)
                workers = self._workers
                if workers is None:
                    workers = self._workers = self._make_workers()
                stack.callback(self._close, workers)
                outbox = self._start_outbox()
                stack.callback(outbox.close)
                self._dispatcher.attach(self._fetcher, workers, outbox, self._transactor)
                self._fetcher.start()
                stack.callback(self._fetcher.join, _JOIN_SECONDS)
                stack.callback(self._fetcher.leave)
                self._dispatcher.run()
        except BaseException as crash:  # noqa: BLE001 - the runner raises it; nothing is committed after it
            self._crash = crash

    def _close(self, workers: Workers) -> None:
        problem = workers.close()
        if problem is not None:
            self._reporter.error(problem, fatal=True)
            self._closing_problem = problem

    def _on_gone(self, tps: Sequence[TopicPartition]) -> "Future[None] | None":
        """The fetcher's thread calls it when these partitions are committed for the last time, or lost."""
        return None if self._workers is None else self._workers.gone(tps)

    def _start_outbox(self) -> Outbox | Transactor | DryOutbox:
        if self._handler.is_dry_run:
            return DryOutbox()
        if self._transactor is not None:
            self._transactor.start()
            return self._transactor
        producer = make_producer(self._brokers, settings=self._handler.named_settings, proven=False)
        make_alone = partial(make_alone_producer, self._brokers, self._handler.named_settings)
        return Outbox(producer, self._inbox, make_alone=make_alone, brokers=self._brokers)


def _make_transaction(
    brokers: str, name: str, handler: Handler, purpose: str, settings: Mapping[str, Any]
) -> Transaction:
    chosen = {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, **settings, **handler.named_settings}
    return Transaction(brokers, f"{name}:{purpose}" if purpose else name, group=None, settings=chosen)


def _opened_ids(deduped: Sequence[Handler]) -> Callable[[str], LocalSeenIds]:
    """The function from the name of a handler to the ids that it has seen. Each route has its own."""
    ids = {each.name: open_seen_ids(seen_ids_file(each.group), each.name) for each in deduped}
    return ids.__getitem__


def _transactional_id(handler: Handler, member: str, number: int) -> str:
    """Return this member's transactional id.

    With static_id= or partitions= the id is the same in the next run, whose producer then aborts the last run's
    transaction.
    """
    if handler.partitions:
        owned = ",".join(f"{topic}[{partition}]" for topic, partition in sorted(handler.partitions))
        return transactional_id(handler.group, handler.name, sha256(owned.encode()).hexdigest()[:16])
    lasting = None if handler.static_id is None else f"{handler.static_id}-{number}"
    return transactional_id(handler.group, handler.name, lasting or member)
