"""Open membership: being a member of a group with any assignor, while another client moves the data.

A thread of its own speaks to the coordinator, so heartbeats depend on nobody. What it decides about partitions it puts
into ``notices``, which the thread that owns the consumer carries out.
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
from penstock.assign import Assignor, Topic
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import (
    HANDED_OVER,
    JOINED,
    PARTITIONS_CHANGED,
    SILENT,
    STALLED,
    TIMED_OUT,
    TOPICS_CHANGED,
    UNKNOWN,
    Coordinator,
    GroupSnapshot,
    OngoingRebalance,
    Reason,
    Rebalance,
    change_between,
)
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import CONSUMER_DEFAULTS, static_id
from penstock.kafka.client.kafka_python_settings import open_settings
from penstock.kafka.errors import is_final, kafka_error
from penstock.kafka.group.coordinator import CoordinatorConnection, Identity, Joined, Network
from penstock.kafka.group.leader import Leader, wanted_topics
from penstock.kafka.group.membership_events import (
    Committed,
    MemberFailed,
    Notice,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from penstock.kafka.group.subscription_format import Ballot, read_assignment, write_subscription

_DEFAULTS = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 3_000, "max.poll.interval.ms": 300_000}
_NO_GENERATION = -1
_RETRY_SECONDS = 0.2
_MOST_HEARTBEAT_WAIT_SECONDS = 10.0
_JOIN_THREAD_SECONDS = 5.0
# The coordinator does not count this member any more, or not in this generation.
_GIVEN_UP = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION})


class SelfManagedMember:
    """Start it, carry out its notices, ``tick`` while that goes well, ``leave``.

    Commits are sent as whoever the member is now, in the newest generation. ``losses`` says how many losses the one
    who asks has heard of: if it is one too few, what is to be committed was done for partitions that are not ours.
    """

    def __init__(self, handler: Handler, *, number: int, brokers: str, tell: Callable[[Rebalance], None]) -> None:
        self.notices: SimpleQueue[Notice] = SimpleQueue()
        self._handler = handler
        self._assignors: dict[str, Assignor] = {each.name: each for each in handler.assignors}
        self._cooperates = handler.cooperates
        self._session, self._interval, self._patience = (
            handler.settings.get(name, default) / 1000 for name, default in _DEFAULTS.items()
        )
        refresh = "topic.metadata.refresh.interval.ms"
        self._refresh = handler.settings.get(refresh, CONSUMER_DEFAULTS[refresh]) / 1000
        self._brokers = brokers
        self._tell = tell
        self._network = Network(open_settings(brokers, handler.named_settings))
        self._line: CoordinatorConnection = self._network.line(handler.group)
        self._commits: CoordinatorConnection = self._network.line(handler.group)
        self._leader = Leader(handler.group, partial(Cluster, brokers, handler.settings))
        self._identity = Identity(handler.group, "", _NO_GENERATION, static_id(handler, number))
        self._losses = 0
        self._owned: frozenset[TopicPartition] = frozenset()
        self._had: tuple[frozenset[TopicPartition], int] = (frozenset(), _NO_GENERATION)  # by the last assignment
        self._coordinator: Coordinator | None = None
        self._topics: frozenset[str] = frozenset()
        self._view: GroupSnapshot | None = None  # of the last round that this member led
        self._round: OngoingRebalance | None = None
        self._next_reason: Reason | None = JOINED
        self._next_beat = self._heard = self._polled = time.monotonic()
        self._next_look = 0.0
        self._offers_anew = False
        self._wake = threading.Event()
        self._leaving = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-group", daemon=True)

    # The consumer's side.

    def start(self) -> None:
        self._thread.start()

    @property
    def id(self) -> str | None:
        return self._identity.member_id or None

    def tick(self) -> None:
        """The consumer is being polled."""
        self._polled = time.monotonic()

    def commit(self, commits: Mapping[TopicPartition, tuple[int, str]], *, losses: int) -> None:
        """Wait for the answer; raises where anything was refused."""
        refused = self._commits.commit(self.as_of(losses), commits)
        self._look_into(refused.values())
        for code in refused.values():
            raise KafkaException(KafkaError(code))

    def commit_later(self, commits: Mapping[TopicPartition, tuple[int, str]], *, losses: int) -> None:
        """The answer is a notice."""

        def on_answer(answer: dict[TopicPartition, int] | KafkaException) -> None:
            if isinstance(answer, KafkaException):
                refused = dict.fromkeys(commits, answer.args[0].str())
            else:
                self._look_into(answer.values())
                refused = {tp: KafkaError(code).str() for tp, code in answer.items()}
            self.notices.put(Committed(commits, refused))

        self._commits.commit_later(self.as_of(losses), commits, on_answer)

    def offer_anew(self) -> None:
        """The consumer let go of everything, and is to take it again, if the coordinator still counts this member."""
        self._offers_anew = True
        self._next_beat = 0.0
        self._wake.set()

    def stop_rebalancing(self) -> None:
        """Only heartbeats from now on, until it leaves."""
        self._leaving.set()
        self._wake.set()

    def leave(self) -> None:
        """A static member does not say so: it may be back within its session."""
        self.stop_rebalancing()
        identity = self._identity
        if identity.member_id and identity.static_id is None:
            with suppress(KafkaException):  # then the session's end will tell
                self._commits.leave(identity, "the app stops")
        self._over.set()
        self._network.close()
        self._wake.set()
        if self._thread.ident is not None:  # it may never have begun
            self._thread.join(_JOIN_THREAD_SECONDS)

    def as_of(self, losses: int) -> Identity:
        """As whom to commit; raises where what is to be committed was done for partitions that are not ours."""
        # In this order: a loss is counted before the member becomes another one.
        identity = self._identity
        if losses != self._losses:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID))
        return identity

    def _look_into(self, codes: Iterable[int]) -> None:
        """A commit was refused as if this member were none: ask at once."""
        if not _GIVEN_UP.isdisjoint(codes):
            self._next_beat = 0.0
            self._wake.set()

    # The thread.

    def _run(self) -> None:
        try:
            while not self._leaving.is_set():
                try:
                    self._go_round()
                    self._stay()
                except KafkaException as error:
                    self._face(error)
                except _SilenceError:
                    continue
                except _LeavingError:
                    break
            self._linger()
        except BaseException as error:  # noqa: BLE001 - told to whoever owns the consumer
            if not self._leaving.is_set():
                self.notices.put(MemberFailed(error))

    def _face(self, error: KafkaException) -> None:
        code = error.args[0].code()
        inner = kafka_error(error)
        if self._leaving.is_set() or code == KafkaError.REBALANCE_IN_PROGRESS:
            return
        if code in _GIVEN_UP:
            self._lose(TIMED_OUT, keep_id=code == KafkaError.ILLEGAL_GENERATION)
            return
        if inner is not None and is_final(inner):
            raise error
        self._coordinator = None
        self._leaving.wait(_RETRY_SECONDS)
        if self._owned and time.monotonic() - self._heard > self._session:
            self._lose(SILENT, keep_id=True)

    # A round.

    def _go_round(self) -> None:
        story = self._begin_round()
        if self._owned and not self._cooperates:
            self._give_up(self._owned, story)
        if self._coordinator is None:
            self._coordinator = self._line.find_coordinator()
            self._mark("coordinator found")
        topics = self._subscription()
        joined = self._join(topics, story)
        self._mark("joined")
        assignments = self._divide(joined, story)
        data = self._line.sync(self._identity, joined.strategy, assignments, seconds=self._patience)
        self._mark("synced")
        self._heard = time.monotonic()
        self._next_beat = self._heard + self._interval
        self._settle(read_assignment(data), story)
        self._round = None
        self._tell(story.finished(now=time.monotonic()))

    def _begin_round(self) -> OngoingRebalance:
        """Attempts that fail belong to the round that they are of."""
        reason, self._next_reason = self._next_reason or UNKNOWN, None
        if self._round is None:
            self._round = OngoingRebalance("open", reason, now=time.monotonic(), moment=time.time())
            self._round.known["votes"] = tuple(self._assignors)
        return self._round

    def _mark(self, phase: str) -> None:
        if self._round is not None:
            self._round.phase(phase, now=time.monotonic())

    def _join(self, topics: frozenset[str], story: OngoingRebalance) -> Joined:
        while True:
            joined = self._line.join(
                self._identity,
                [(name, self._describe(assignor, topics)) for name, assignor in self._assignors.items()],
                session_seconds=self._session,
                rebalance_seconds=self._patience,
                reason=story.reason,
            )
            self._identity = replace(self._identity, member_id=joined.member_id, generation=joined.generation)
            if joined.generation != _NO_GENERATION:
                break
        self._topics = topics
        story.known.update(
            member_id=joined.member_id,
            generation=joined.generation,
            strategy=joined.strategy,
            coordinator=self._coordinator,
            leader=joined.leader,
        )
        return joined

    def _describe(self, assignor: Assignor, topics: frozenset[str]) -> bytes:
        had, generation = self._had
        write = getattr(assignor, "user_data", None)
        return write_subscription(
            topics,
            owned=tuple(sorted(self._owned)) if self._cooperates else (),
            generation=generation,
            rack=self._handler.rack,
            user_data=None if write is None else write(sorted(had), generation),
            ballot=Ballot(tuple(self._assignors)),
        )

    def _divide(self, joined: Joined, story: OngoingRebalance) -> Mapping[str, bytes]:
        """The leader says who gets what; the others have nothing to say."""
        before, self._view = self._view, None
        if not joined.leads or joined.skip_assignment:
            return {}
        topics = self._line.topics(wanted_topics(joined))
        division = self._leader.divide(joined, self._assignors[joined.strategy], topics)
        self._view = division.view
        if story.reason == UNKNOWN and before is not None:
            change = change_between(before, division.view)
            if change is not None:
                story.explain(change)
        story.known["members"] = division.voters
        self._mark("assigned")
        return division.assignments

    def _settle(self, assigned: frozenset[TopicPartition], story: OngoingRebalance) -> None:
        """Begin with what is new at once: nobody has it. Then give up what is another's."""
        given, taken = self._owned - assigned, assigned - self._owned
        self._had = assigned, self._identity.generation
        self._owned |= taken
        self._carry_out(PartitionsAssigned, taken)
        story.took(taken, now=time.monotonic())
        self._mark("taken over")
        if given:
            self._give_up(given, story)
            self._next_reason = HANDED_OVER
        self._next_look = time.monotonic() + self._refresh

    def _give_up(self, tps: frozenset[TopicPartition], story: OngoingRebalance) -> None:
        self._carry_out(PartitionsRevoked, tps)
        self._owned -= tps
        story.gave_up(tps, now=time.monotonic())
        self._mark("given up")

    def _carry_out(
        self, kind: type[PartitionsAssigned] | type[PartitionsRevoked], tps: frozenset[TopicPartition]
    ) -> None:
        """The consumer's thread does it, and may take long. The member stays one meanwhile."""
        done = threading.Event()

        def on_done() -> None:
            done.set()
            self._wake.set()

        self.notices.put(kind(tuple(sorted(tps)), on_done))
        while not self._leaving.is_set():
            self._wake.clear()
            if done.is_set():
                return
            with suppress(_RebalanceError):
                self._beat()
            self._rest()
        raise _LeavingError

    def _lose(self, reason: Reason, *, keep_id: bool) -> None:
        """Nothing that was done for these partitions may be committed from now on."""
        self._losses += 1
        tps, self._owned = self._owned, frozenset()
        self._had = frozenset(), _NO_GENERATION
        self._view = None
        member_id = self._identity.member_id if keep_id else ""
        self._identity = replace(self._identity, member_id=member_id, generation=_NO_GENERATION)
        self.notices.put(PartitionsLost(tuple(sorted(tps)), self._losses))
        self._round, self._next_reason = None, reason
        self._begin_round().lost(tps, now=time.monotonic())

    # Between rounds.

    def _stay(self) -> None:
        """Until there is a reason to go round again."""
        while not self._leaving.is_set():
            self._wake.clear()
            if self._next_reason is not None:
                return
            try:
                self._beat()
            except _RebalanceError:
                return
            if self._offers_anew:
                self._offers_anew = False
                self._carry_out(PartitionsAssigned, self._owned)
            if time.monotonic() - self._polled > self._patience:
                self._stall()
            elif time.monotonic() >= self._next_look:
                self._look_at_topics()
            self._rest()

    def _linger(self) -> None:
        """While the last records are finished and committed."""
        with suppress(KafkaException, _SilenceError):
            while self._identity.generation != _NO_GENERATION and not self._over.is_set():
                self._wake.clear()
                with suppress(_RebalanceError):
                    self._beat()
                self._rest()

    def _rest(self) -> None:
        now = time.monotonic()
        self._wake.wait(max(0.0, min(self._next_beat, max(self._next_look, now + _RETRY_SECONDS)) - now))

    def _beat(self) -> None:
        """A heartbeat, if it is time for one. Silence is lived with for as long as the session lasts."""
        now = time.monotonic()
        if now < self._next_beat:
            return
        self._next_beat = now + self._interval
        try:
            self._line.heartbeat(self._identity, seconds=min(self._session, _MOST_HEARTBEAT_WAIT_SECONDS))
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.REBALANCE_IN_PROGRESS:
                self._heard = now
                raise _RebalanceError from error
            if code in _GIVEN_UP or is_final(error.args[0]):
                raise
            self._next_beat = now + min(self._interval, _RETRY_SECONDS)
            if time.monotonic() - self._heard > self._session:
                self._lose(SILENT, keep_id=True)
                raise _SilenceError from error
            self._leaving.wait(_RETRY_SECONDS)
        else:
            self._heard = now

    def _stall(self) -> None:
        """Nobody polls any more: others are to have the partitions, as with any other client."""
        with suppress(KafkaException):
            self._line.leave(self._identity, STALLED)
        self._lose(STALLED, keep_id=False)
        while not self._leaving.is_set() and time.monotonic() - self._polled > self._patience:
            self._leaving.wait(_RETRY_SECONDS)

    def _look_at_topics(self) -> None:
        """New topics, and new partitions of old ones, which are the leader's to see."""
        self._next_look = time.monotonic() + self._refresh
        with suppress(KafkaException):  # the next look will tell
            if self._subscription() != self._topics:
                self._next_reason = TOPICS_CHANGED
            elif self._view is not None:
                known = self._line.topics(set().union(*self._view.topics.values()))
                if _counts(known) != self._view.partitions:
                    self._next_reason = PARTITIONS_CHANGED

    def _subscription(self) -> frozenset[str]:
        if self._handler.pattern is None:
            return frozenset(self._handler.consumed_topics)
        return frozenset(topic for topic in self._line.topics(None) if self._handler.consumes(topic))


class _RebalanceError(Exception):
    """The coordinator wants everybody to join again."""


class _SilenceError(Exception):
    """Nobody knows whether this member still is one, so it counts as none."""


class _LeavingError(Exception):
    """There is nothing more to wait for."""


def _counts(topics: Mapping[str, Topic]) -> dict[str, int]:
    return {name: topic.partitions for name, topic in topics.items()}
