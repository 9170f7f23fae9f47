"""A self-managed group member: Penstock joins the group, with any assignor, while the Kafka client only fetches.

A separate thread talks to the coordinator, so heartbeats do not depend on other threads. It puts what is to be done
with partitions into ``events``; the fetcher thread, which owns the consumer, does it.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from confluent_kafka import KafkaError, KafkaException

from penstock.app import Handler
from penstock.assign import Assignor
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import (
    HANDED_OVER,
    JOINED,
    SILENT,
    STALLED,
    TIMED_OUT,
    UNKNOWN,
    Coordinator,
    GroupSnapshot,
    OngoingRebalance,
    Reason,
    Rebalance,
    change_between,
)
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import static_id
from penstock.kafka.client.kafka_python_settings import kafka_python_config
from penstock.kafka.error_codes import NOT_A_MEMBER, Code
from penstock.kafka.errors import is_final, kafka_error
from penstock.kafka.group.coordinator import CoordinatorConnection, CoordinatorNetwork, Identity, Joined
from penstock.kafka.group.heartbeats import RETRY_SECONDS, Heartbeats, RejoinError, SilenceError
from penstock.kafka.group.leader import Leader, subscribed_topics
from penstock.kafka.group.membership_events import (
    MemberFailed,
    MembershipEvent,
    OffsetsCommitted,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from penstock.kafka.group.subscribed_topics import SubscribedTopics
from penstock.kafka.group.subscription_format import PenstockData, read_assignment, write_subscription

_DEFAULTS = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 3_000, "max.poll.interval.ms": 300_000}
_NO_GENERATION = -1
_JOIN_THREAD_SECONDS = 5.0


class SelfManagedMember:
    """Call ``start``, handle its ``events``, call ``tick`` after each poll, and ``leave`` at the end.

    Commits carry the newest generation. ``losses`` is the number of PartitionsLost that the caller has handled. If it
    is too low, the caller commits for partitions that the member has lost, and the commit is not sent.
    """

    def __init__(
        self, handler: Handler, *, number: int, brokers: str, on_rebalance: Callable[[Rebalance], None]
    ) -> None:
        self.events: SimpleQueue[MembershipEvent] = SimpleQueue()
        self._handler = handler
        self._assignors: dict[str, Assignor] = {each.name: each for each in handler.assignors}
        self._cooperates = handler.cooperates
        self._session, heartbeat_interval, self._poll_interval = (
            handler.settings.get(name, default) / 1000 for name, default in _DEFAULTS.items()
        )
        self._brokers = brokers
        self._on_rebalance = on_rebalance
        self._network = CoordinatorNetwork(kafka_python_config(brokers, handler.named_settings))
        self._connection: CoordinatorConnection = self._network.connect(handler.group)
        self._commits: CoordinatorConnection = self._network.connect(handler.group)
        self._leader = Leader(handler.group, partial(Cluster, brokers, handler.settings))
        self._identity = Identity(handler.group, "", _NO_GENERATION, static_id(handler, number))
        self._losses = 0
        self._owned: frozenset[TopicPartition] = frozenset()
        # The partitions of the last assignment, and its generation.
        self._last_assignment: tuple[frozenset[TopicPartition], int] = (frozenset(), _NO_GENERATION)
        self._coordinator: Coordinator | None = None
        self._topics = SubscribedTopics(handler, self._connection)
        self._view: GroupSnapshot | None = None  # of the last rebalance, if this member was its leader
        self._round: OngoingRebalance | None = None
        self._next_reason: Reason | None = JOINED
        self._polled = time.monotonic()
        self._reassigns = False
        self._wake = threading.Event()
        self._leaving = threading.Event()
        self._heartbeats = Heartbeats(
            self._connection, interval=heartbeat_interval, session=self._session, leaving=self._leaving
        )
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-group", daemon=True)

    # Called on the fetcher thread.

    def start(self) -> None:
        self._thread.start()

    @property
    def id(self) -> str | None:
        return self._identity.member_id or None

    def tick(self) -> None:
        """Note that the fetcher polls."""
        self._polled = time.monotonic()

    def commit(self, commits: Mapping[TopicPartition, tuple[int, str]], *, losses: int) -> None:
        """Commit and wait for the answer; raise if the coordinator refuses any partition."""
        refused = self._commits.commit(self.identity_after(losses), commits)
        self._check_membership(refused.values())
        for code in refused.values():
            raise KafkaException(KafkaError(code))

    def commit_later(self, commits: Mapping[TopicPartition, tuple[int, str]], *, losses: int) -> None:
        """Commit in the background. The answer is a Committed event."""

        def on_answer(answer: dict[TopicPartition, int] | KafkaException) -> None:
            if isinstance(answer, KafkaException):
                refused = dict.fromkeys(commits, answer.args[0].str())
            else:
                self._check_membership(answer.values())
                refused = {tp: KafkaError(code).str() for tp, code in answer.items()}
            self.events.put(OffsetsCommitted(commits, refused))

        self._commits.commit_later(self.identity_after(losses), commits, on_answer)

    def reassign(self) -> None:
        """Assign all partitions to the consumer again, if the coordinator still knows this member."""
        self._reassigns = True
        self._heartbeats.send_at_once()
        self._wake.set()

    def stop_rebalancing(self) -> None:
        """Send only heartbeats from now on, until ``leave``."""
        self._leaving.set()
        self._wake.set()

    def leave(self) -> None:
        """Leave the group and stop the thread. A static member sends no LeaveGroup: it may restart in its session."""
        self.stop_rebalancing()
        identity = self._identity
        if identity.member_id and identity.static_id is None:
            with suppress(KafkaException):  # then the coordinator removes it when its session ends
                self._commits.leave(identity, "the app stops")
        self._left.set()
        self._network.close()
        self._wake.set()
        if self._thread.ident is not None:  # the thread may not have been started
            self._thread.join(_JOIN_THREAD_SECONDS)

    def identity_after(self, losses: int) -> Identity:
        """Return the identity to commit with; raise if the caller has not handled the last loss of partitions."""
        # In this order: the member's thread counts a loss before it changes the identity.
        identity = self._identity
        if losses != self._losses:
            raise KafkaException(KafkaError(Code.UNKNOWN_MEMBER_ID))
        return identity

    def _check_membership(self, codes: Iterable[int]) -> None:
        """If a commit was refused because the coordinator does not know this member, send a heartbeat at once."""
        if not NOT_A_MEMBER.isdisjoint(codes):
            self._heartbeats.send_at_once()
            self._wake.set()

    # The thread.

    def _run(self) -> None:
        try:
            while not self._leaving.is_set():
                try:
                    self._rebalance()
                    self._stay_member()
                except KafkaException as error:
                    self._handle_error(error)
                except SilenceError:
                    continue
                except _LeavingError:
                    break
            self._heartbeat_until_left()
        except BaseException as error:  # noqa: BLE001 - the fetcher thread raises it
            if not self._leaving.is_set():
                self.events.put(MemberFailed(error))

    def _handle_error(self, error: KafkaException) -> None:
        code = error.args[0].code()
        inner = kafka_error(error)
        if self._leaving.is_set() or code == Code.REBALANCE_IN_PROGRESS:
            return
        if code in NOT_A_MEMBER:
            self._lose(TIMED_OUT, keep_id=code == Code.ILLEGAL_GENERATION)
            return
        if inner is not None and is_final(inner):
            raise error
        self._coordinator = None
        self._leaving.wait(RETRY_SECONDS)
        if self._owned and self._heartbeats.is_silent:
            self._lose(SILENT, keep_id=True)

    # A rebalance.

    def _rebalance(self) -> None:
        round_ = self._begin_round()
        if self._owned and not self._cooperates:
            self._revoke(self._owned, round_)
        if self._coordinator is None:
            self._coordinator = self._connection.find_coordinator()
            self._mark("coordinator found")
        topics = self._topics.current()
        joined = self._join(topics, round_)
        self._mark("joined")
        assignments = self._assign_as_leader(joined, round_)
        data = self._connection.sync(self._identity, joined.strategy, assignments, seconds=self._poll_interval)
        self._mark("synced")
        self._heartbeats.answered()
        self._apply_assignment(read_assignment(data), round_)
        self._round = None
        self._on_rebalance(round_.finished(now=time.monotonic()))

    def _begin_round(self) -> OngoingRebalance:
        """Start a report, or continue that of an attempt that failed."""
        reason, self._next_reason = self._next_reason or UNKNOWN, None
        if self._round is None:
            self._round = OngoingRebalance("self-managed", reason, now=time.monotonic(), moment=time.time())
            self._round.known["votes"] = tuple(self._assignors)
        return self._round

    def _mark(self, phase: str) -> None:
        if self._round is not None:
            self._round.phase(phase, now=time.monotonic())

    def _join(self, topics: frozenset[str], round_: OngoingRebalance) -> Joined:
        while True:
            joined = self._connection.join(
                self._identity,
                [(name, self._subscription_bytes(assignor, topics)) for name, assignor in self._assignors.items()],
                session_seconds=self._session,
                rebalance_seconds=self._poll_interval,
                reason=round_.reason,
            )
            self._identity = replace(self._identity, member_id=joined.member_id, generation=joined.generation)
            if joined.generation != _NO_GENERATION:
                break
        self._topics.joined(topics)
        round_.known.update(
            member_id=joined.member_id,
            generation=joined.generation,
            strategy=joined.strategy,
            coordinator=self._coordinator,
            leader=joined.leader,
        )
        return joined

    def _subscription_bytes(self, assignor: Assignor, topics: frozenset[str]) -> bytes:
        last, generation = self._last_assignment
        write = getattr(assignor, "user_data", None)
        return write_subscription(
            topics,
            owned=tuple(sorted(self._owned)) if self._cooperates else (),
            generation=generation,
            rack=self._handler.rack,
            user_data=None if write is None else write(sorted(last), generation),
            penstock_data=PenstockData(tuple(self._assignors)),
        )

    def _assign_as_leader(self, joined: Joined, round_: OngoingRebalance) -> Mapping[str, bytes]:
        """If this member is the leader, return the encoded assignment of each member; else return {}."""
        before, self._view = self._view, None
        if not joined.leads or joined.skip_assignment:
            return {}
        topics = self._connection.topics(subscribed_topics(joined))
        decision = self._leader.assign(joined, self._assignors[joined.strategy], topics)
        self._view = decision.view
        if round_.reason == UNKNOWN and before is not None:
            change = change_between(before, decision.view)
            if change is not None:
                round_.explain(change)
        round_.known["members"] = decision.voters
        self._mark("assigned")
        return decision.assignments

    def _apply_assignment(self, assigned: frozenset[TopicPartition], round_: OngoingRebalance) -> None:
        """Assign the new partitions at once, as they have no owner; then revoke those that move to other members."""
        revoked, added = self._owned - assigned, assigned - self._owned
        self._last_assignment = assigned, self._identity.generation
        self._owned |= added
        self._carry_out(PartitionsAssigned, added)
        round_.took(added, now=time.monotonic())
        self._mark("taken over")
        if revoked:
            self._revoke(revoked, round_)
            self._next_reason = HANDED_OVER
        self._topics.check_later()

    def _revoke(self, tps: frozenset[TopicPartition], round_: OngoingRebalance) -> None:
        self._carry_out(PartitionsRevoked, tps)
        self._owned -= tps
        round_.gave_up(tps, now=time.monotonic())
        self._mark("given up")

    def _carry_out(
        self, kind: type[PartitionsAssigned] | type[PartitionsRevoked], tps: frozenset[TopicPartition]
    ) -> None:
        """Send the event, and send heartbeats until the fetcher thread has handled it, which may take long."""
        done = threading.Event()

        def on_done() -> None:
            done.set()
            self._wake.set()

        self.events.put(kind(tuple(sorted(tps)), on_done))
        while not self._leaving.is_set():
            self._wake.clear()
            if done.is_set():
                return
            with suppress(RejoinError):
                self._heartbeat()
            self._wait_for_next()
        raise _LeavingError

    def _lose(self, reason: Reason, *, keep_id: bool) -> None:
        """Lose all partitions. From now on no commit for them is sent."""
        self._losses += 1
        tps, self._owned = self._owned, frozenset()
        self._last_assignment = frozenset(), _NO_GENERATION
        self._view = None
        member_id = self._identity.member_id if keep_id else ""
        self._identity = replace(self._identity, member_id=member_id, generation=_NO_GENERATION)
        self.events.put(PartitionsLost(tuple(sorted(tps)), self._losses))
        self._round, self._next_reason = None, reason
        self._begin_round().lost(tps, now=time.monotonic())

    # Between rebalances.

    def _stay_member(self) -> None:
        """Send heartbeats and check topics until there is a reason to rebalance."""
        while not self._leaving.is_set():
            self._wake.clear()
            if self._next_reason is not None:
                return
            try:
                self._heartbeat()
            except RejoinError:
                return
            if self._reassigns:
                self._reassigns = False
                self._carry_out(PartitionsAssigned, self._owned)
            if time.monotonic() - self._polled > self._poll_interval:
                self._leave_stalled()
                return  # to rejoin: a heartbeat would be refused now
            if time.monotonic() >= self._topics.next_check:
                self._next_reason = self._topics.check(self._view)
            self._wait_for_next()

    def _heartbeat_until_left(self) -> None:
        """Send heartbeats while the last records are finished and committed."""
        with suppress(KafkaException, SilenceError):
            while self._identity.generation != _NO_GENERATION and not self._left.is_set():
                self._wake.clear()
                with suppress(RejoinError):
                    self._heartbeat()
                self._wait_for_next()

    def _wait_for_next(self) -> None:
        now = time.monotonic()
        self._wake.wait(max(0.0, min(self._heartbeats.next, max(self._topics.next_check, now + RETRY_SECONDS)) - now))

    def _heartbeat(self) -> None:
        """Send a heartbeat if it is time. If the coordinator is silent for a whole session, lose all partitions."""
        try:
            self._heartbeats.send_if_due(self._identity)
        except SilenceError:
            self._lose(SILENT, keep_id=True)
            raise

    def _leave_stalled(self) -> None:
        """Leave the group because the fetcher has not polled for max.poll.interval.ms, as other clients do."""
        with suppress(KafkaException):
            self._connection.leave(self._identity, STALLED)
        self._lose(STALLED, keep_id=False)
        while not self._leaving.is_set() and time.monotonic() - self._polled > self._poll_interval:
            self._leaving.wait(RETRY_SECONDS)


class _LeavingError(Exception):
    """The member is about to leave, so the fetcher handles no more events."""
