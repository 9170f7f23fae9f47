"""A member of a consumer group: the threads that consume for one handler."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from penstock.app import Handler
from penstock.core.progress.lease import Lease
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.engine.dispatch.dispatcher import Dispatcher
from penstock.engine.dispatch.manual_ack import with_ack
from penstock.engine.dispatch.thread_messages import AckedBelow, GetProgress, Inbox, PartitionState, Renew, Stop
from penstock.engine.fetch.fetcher import Fetcher
from penstock.engine.fetch.start_positions import FirstTimes
from penstock.engine.fetch.store_session import open_store_session
from penstock.engine.membership.catch_up import CatchUp
from penstock.engine.observe.health import Health
from penstock.engine.observe.member_metrics import MemberMetrics
from penstock.engine.observe.reporter import Reporter
from penstock.engine.produce.outbox import Outbox
from penstock.engine.produce.transactor import Transactor
from penstock.engine.workers.worker_pools import make_workers
from penstock.kafka import MESSAGES, Cluster, make_alone_producer, make_producer
from penstock.kafka.client.message_records import tp_of
from penstock.kafka.client.transactions import Transaction, transactional_id

_JOIN_SECONDS = 10.0
# How long to wait for an answer before looking whether anybody is there to give one.
_SURVEY_SECONDS = 0.2
_NUMBERS = count(1)
# Kafka's own defaults.
_SESSION_TIMEOUT_MS = 45_000
_HEARTBEAT_MS = {"classic": 3_000, "consumer": 5_000}
# How much later than it should be a heartbeat may be.
_LATE_HEARTBEAT_MS = 500
# A killed member's transaction ends after this long, and until then readers of its outputs wait.
_TRANSACTION_TIMEOUT_MS = 10_000


def session_seconds(handler: Handler) -> float:
    """How long the broker counts a member of this handler that it does not hear from."""
    return float(handler.settings.get("session.timeout.ms", _SESSION_TIMEOUT_MS)) / 1000


def lease_seconds(handler: Handler) -> float:
    """How long a member that hears nothing may take its partitions for its own.

    The broker counts its session from the last heartbeat, which may be an interval older than the last poll.
    """
    session = session_seconds(handler) * 1000
    heartbeat = float(handler.settings.get("heartbeat.interval.ms", _HEARTBEAT_MS[handler.protocol]))
    return max(session / 2, session - heartbeat - _LATE_HEARTBEAT_MS) / 1000


@dataclass(frozen=True)
class SharedState:
    """What the members of one handler in one process share."""

    catch_up: CatchUp = field(default_factory=CatchUp)
    first_times: FirstTimes = field(default_factory=FirstTimes)


class Member:
    """Start it, ask it to stop (twice is fine), join it; then ``error`` says whether it stopped because of one."""

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
        self._name = f"{socket.gethostname()}-{os.getpid()}-{next(_NUMBERS)}"
        self._reporter = Reporter(handler, emit, member=self._name, adapter=self._adapter, per_record=per_record)
        self._lease = Lease(lease_seconds(handler))
        self._dispatcher = Dispatcher(
            handler,
            self._inbox,
            self._reporter,
            adapter=self._adapter,
            lease=self._lease,
            until=until,
            catch_up=shared.catch_up,
        )
        self._transactor = None
        if handler.is_exactly_once:
            name = _transactional_id(handler, self._name, number)
            make, topics = partial(_make_transaction, brokers, name, handler), _written_topics(handler)
            read_limits = partial(Cluster(brokers, handler.settings).largest_batches, topics)
            self._transactor = Transactor(make, read_limits, self._inbox, brokers=brokers)
        self._fetcher = Fetcher(
            handler,
            self._inbox,
            brokers=brokers,
            in_flight_room=self._dispatcher.in_flight_room,
            lease=self._lease,
            first_times=shared.first_times,
            number=number,
            transactor=self._transactor,
            store_session=self._store_session,
            tell=self._reporter.rebalanced,
        )
        self._brokers = brokers
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-dispatcher", daemon=True)
        self._crash: BaseException | None = None

    def start(self, lag: int, topics: tuple[str, ...]) -> None:
        self._reporter.started(lag, topics)
        self._thread.start()

    def stop(self, reason: str) -> None:
        self._inbox.put(Stop(reason))

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """What it owns, and how far that is; nothing where it has stopped. From any thread."""
        answer: SimpleQueue[dict[TopicPartition, PartitionState]] = SimpleQueue()
        self._inbox.put(GetProgress(answer))
        while self._thread.is_alive():
            with suppress(Empty):
                return answer.get(timeout=_SURVEY_SECONDS)
        return {}

    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._inbox.put(AckedBelow(offsets))

    def renew(self, tps: Sequence[TopicPartition]) -> None:
        """Their topics were made anew: begin their logs again. From any thread."""
        self._fetcher.ask(Renew(tps))

    def join(self, timeout: float) -> bool:
        """Whether it has stopped."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        return self._crash or self._dispatcher.error

    @property
    def has_joined(self) -> bool:
        """Whether the group has assigned it something, or nothing; from any thread."""
        return self._dispatcher.has_joined

    @property
    def id_in_group(self) -> str | None:
        """With the new protocol, once it has begun to join; from any thread."""
        return self._fetcher.member_id

    def health(self) -> Health:
        """From any thread."""
        finished, in_flight, longest = self._dispatcher.health()
        return Health(
            handler=self._handler.name,
            group=self._handler.group,
            member=self._name,
            polled_seconds_ago=round(time.monotonic() - self._fetcher.polled, 3),
            finished_seconds_ago=None if finished is None else round(finished, 3),
            in_flight=in_flight,
            longest=longest,
        )

    def member_metrics(self) -> MemberMetrics:
        """From any thread."""
        _, in_flight, longest = self._dispatcher.health()
        lanes, works, map_bytes = self._dispatcher.load()
        return MemberMetrics(
            handler=self._handler.name,
            group=self._handler.group,
            in_flight=in_flight,
            lanes=lanes,
            works=works,
            concurrency=self._handler.concurrency,
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
                workers = make_workers(self._handler, self._inbox, self._adapter, self._lease)
                stack.callback(workers.close)
                outbox = self._start_outbox()
                stack.callback(outbox.close)
                self._dispatcher.attach(self._fetcher, workers, outbox, self._transactor)
                self._fetcher.start()
                stack.callback(self._fetcher.join, _JOIN_SECONDS)
                stack.callback(self._fetcher.leave)
                self._dispatcher.run()
        except BaseException as crash:  # noqa: BLE001 - handed to whoever joins; nothing more is committed after it
            self._crash = crash

    def _start_outbox(self) -> Outbox | Transactor:
        if self._transactor is not None:
            self._transactor.start()
            return self._transactor
        producer = make_producer(self._brokers, settings=self._handler.named_settings)
        make_alone = partial(make_alone_producer, self._brokers, self._handler.named_settings)
        return Outbox(producer, self._inbox, make_alone=make_alone, brokers=self._brokers)


def _make_transaction(
    brokers: str, name: str, handler: Handler, purpose: str, settings: Mapping[str, Any]
) -> Transaction:
    chosen = {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, **settings, **handler.named_settings}
    return Transaction(brokers, f"{name}:{purpose}" if purpose else name, group=None, settings=chosen)


def _written_topics(handler: Handler) -> list[str]:
    return [topic for topic in (handler.to, handler.dead_letter, *handler.delayed) if topic is not None]


def _transactional_id(handler: Handler, member: str, number: int) -> str:
    """Of this member alone. Where that has a lasting name, so has its producer, which ends what its last run left."""
    if handler.partitions:
        owned = ",".join(f"{topic}[{partition}]" for topic, partition in sorted(handler.partitions))
        return transactional_id(handler.group, handler.name, sha256(owned.encode()).hexdigest()[:16])
    lasting = None if handler.static_id is None else f"{handler.static_id}-{number}"
    return transactional_id(handler.group, handler.name, lasting or member)
