"""A rebalance as one member saw it: what led to it, its phases, and what changed hands."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.progress.commit_log import COMMIT_LOG, group_hash, partition_of
from penstock.core.records.record import TopicPartition

Reason = str
"""Why a rebalance happened, in words; ``UNKNOWN`` where a member cannot know it."""

UNKNOWN: Reason = "unknown"
JOINED: Reason = "this member joined"
LEFT: Reason = "this member left"
TIMED_OUT: Reason = "this member was given up by the coordinator"
BROKE: Reason = "the consumer of this member broke"
SILENT: Reason = "the coordinator was silent for longer than the session lasts"
STALLED: Reason = "this member was not polled for longer than max.poll.interval.ms"
HANDED_OVER: Reason = "partitions that were given up go to their new owners"
TOPICS_CHANGED: Reason = "the topics that this member subscribes to changed"
_GONE = "left or timed out"
PARTITIONS_CHANGED: Reason = "the number of partitions changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """The broker that looks after a group: it leads one partition of the offsets topic, found by the group's hash."""

    node: int | None
    address: str
    hash: int
    offsets_partitions: int | None
    partition: int | None

    @classmethod
    def of(cls, group: str, *, node: int | None, address: str, offsets_partitions: int | None) -> "Coordinator":
        """``offsets_partitions`` is the number of partitions of ``__consumer_offsets``, None where it is not known."""
        return cls(
            node=node,
            address=address,
            hash=group_hash(group),
            offsets_partitions=offsets_partitions,
            partition=None if offsets_partitions is None else partition_of(group, offsets_partitions),
        )

    def explained(self) -> str:
        where = self.address if self.node is None else f"broker {self.node} ({self.address})"
        if self.partition is None:
            return where
        return (
            f"{where} leads {COMMIT_LOG}[{self.partition}], as the group's hash {self.hash} modulo "
            f"{self.offsets_partitions} is {self.partition}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a rebalance, and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A member as the leader sees it; ``votes`` are its strategies in its order, None where it does not tell."""

    id: str
    static_id: str | None
    rack: str | None
    topics: tuple[str, ...]
    votes: tuple[str, ...] | None
    owned: int
    assigned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One round, from what set it off until this member worked with its outcome.

    Moments are in seconds since 1970. What this member cannot know is None: with the client's own membership that is
    most of it, and who the others are is told to the leader alone.
    """

    membership: str
    reason: Reason
    began: float
    seconds: float
    phases: tuple[Phase, ...] = ()
    member_id: str | None = None
    generation: int | None = None
    strategy: str | None = None
    votes: tuple[str, ...] = ()
    coordinator: Coordinator | None = None
    leader: str | None = None
    members: tuple[Voter, ...] | None = None
    given_up: tuple[TopicPartition, ...] = ()
    given_up_at: float | None = None
    taken: tuple[TopicPartition, ...] = ()
    taken_at: float | None = None
    lost: tuple[TopicPartition, ...] = ()
    lost_at: float | None = None


class Round:
    """A rebalance that goes on; whoever has it tells it the time, by a clock and by the calendar."""

    def __init__(self, membership: str, reason: Reason, *, now: float, moment: float) -> None:
        self.reason = reason
        self.known: dict[str, Any] = {}
        self._membership = membership
        self._began, self._moment = now, moment
        self._last = now
        self._phases: list[Phase] = []

    def phase(self, name: str, *, now: float) -> None:
        """What has come to its end just now."""
        self._phases.append(Phase(name=name, seconds=round(now - self._last, 6)))
        self._last = now

    def gave_up(self, tps: Iterable[TopicPartition], *, now: float) -> None:
        self.known.update(given_up=tuple(sorted(tps)), given_up_at=self.at(now))

    def took(self, tps: Iterable[TopicPartition], *, now: float) -> None:
        self.known.update(taken=tuple(sorted(tps)), taken_at=self.at(now))

    def lost(self, tps: Iterable[TopicPartition], *, now: float) -> None:
        self.known.update(lost=tuple(sorted(tps)), lost_at=self.at(now))

    def at(self, now: float) -> float:
        return round(self._moment + now - self._began, 6)

    def finished(self, *, now: float) -> Rebalance:
        return Rebalance(
            membership=self._membership,
            reason=self.reason,
            began=round(self._moment, 6),
            seconds=round(now - self._began, 6),
            phases=tuple(self._phases),
            **self.known,
        )


@dataclass(frozen=True, slots=True)
class Groupview:
    """What a leader remembers of the last round, to tell what changed since."""

    members: frozenset[str]
    topics: Mapping[str, frozenset[str]]
    partitions: Mapping[str, int]
    pending: bool


def why(before: Groupview | None, after: Groupview) -> Reason:
    """What a leader can tell by comparing two rounds."""
    if before is None:
        return UNKNOWN
    reasons = [
        *named("joined", after.members - before.members),
        # The coordinator does not say which of the two it was.
        *named(_GONE, before.members - after.members),
    ]
    stayed = after.members & before.members
    if any(before.topics[member] != after.topics[member] for member in stayed):
        reasons.append("a member's topics changed")
    grown = sorted(topic for topic, count in after.partitions.items() if before.partitions.get(topic, count) != count)
    if grown:
        reasons.append(f"the number of partitions of {', '.join(grown)} changed")
    if not reasons and before.pending:
        reasons.append(HANDED_OVER)
    return "; ".join(reasons) or UNKNOWN


def resolved(reason: Reason, left: Collection[str]) -> Reason:
    """The same, where those who left have said so themselves."""
    parts = []
    for part in reason.split("; "):
        what, _, names = part.partition(": ")
        if what == _GONE:
            gone = set(names.split(", "))
            parts += [*named("left", gone & set(left)), *named(_GONE, gone - set(left))]
        else:
            parts.append(part)
    return "; ".join(parts)


def named(what: str, members: Collection[str]) -> list[str]:
    return [f"{what}: {', '.join(sorted(members))}"] if members else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A partition changed hands: at ``at`` (None: nobody known had it before) its ``owner`` began."""

    tp: TopicPartition
    owner: str
    at: float
    seconds: float | None


def without_owner(moves: Iterable[tuple[float, str, str, TopicPartition]]) -> list[Handover]:
    """How long each partition had no owner, from all that members told: (moment, "given up" or "taken", who, which).

    A partition whose last owner is not known counts as unknown, not as nothing.
    """
    free_since: dict[TopicPartition, float] = {}
    found = []
    for at, what, member, tp in sorted(moves):
        if what == "given up":
            free_since[tp] = at
        else:
            since = free_since.pop(tp, None)
            found.append(Handover(tp=tp, owner=member, at=at, seconds=None if since is None else at - since))
    return found
