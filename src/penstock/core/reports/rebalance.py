"""A rebalance as one member saw it: its cause, its phases, and the partitions that changed owners."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.progress.commit_log import COMMIT_LOG, group_hash, partition_of
from penstock.core.records.record import TopicPartition

Reason = str
"""Why a rebalance happened, as text for people; ``UNKNOWN`` if the member cannot know it."""

UNKNOWN: Reason = "unknown"
JOINED: Reason = "this member joined"
LEFT: Reason = "this member left"
TIMED_OUT: Reason = "the coordinator removed this member from the group"
BROKE: Reason = "the consumer of this member failed"
SILENT: Reason = "the coordinator did not answer for longer than the session timeout"
STALLED: Reason = "this member was not polled for longer than max.poll.interval.ms"
HANDED_OVER: Reason = "revoked partitions go to their new owners"
TOPICS_CHANGED: Reason = "the topics that this member subscribes to changed"
PARTITIONS_CHANGED: Reason = "the number of partitions changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """What changed in a group since its last rebalance.

    ``gone`` are members that left or timed out: the coordinator does not tell the leader which. ``left`` are those of
    which we know that they left. ``resized`` are topics whose number of partitions changed.
    """

    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    subscriptions_changed: bool = False
    resized: tuple[str, ...] = ()
    handed_over: bool = False

    def with_known_leavers(self, left: Collection[str]) -> "GroupChange":
        """The same change, given that these members have reported that they left."""
        found = {member for member in self.gone if member in left}
        return replace(
            self,
            left=tuple(sorted({*self.left, *found})),
            gone=tuple(member for member in self.gone if member not in found),
        )

    def describe(self) -> Reason:
        members = {"joined": self.joined, "left": self.left, "left or timed out": self.gone}
        parts = [f"{what}: {', '.join(sorted(names))}" for what, names in members.items() if names]
        if self.subscriptions_changed:
            parts.append("a member's topics changed")
        if self.resized:
            parts.append(f"the number of partitions of {', '.join(self.resized)} changed")
        if self.handed_over:
            parts.append(HANDED_OVER)
        return "; ".join(parts) or UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """The broker that coordinates a group: the leader of the group's partition of ``__consumer_offsets``."""

    node: int | None
    address: str
    hash: int
    offsets_partitions: int | None
    partition: int | None

    @classmethod
    def of(cls, group: str, *, node: int | None, address: str, offsets_partitions: int | None) -> "Coordinator":
        """``offsets_partitions`` is the number of partitions of ``__consumer_offsets``; None if unknown."""
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
    """One phase of a rebalance, and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceMember:
    """A member as the leader sees it; ``votes`` are its assignors by preference, None if it does not send them."""

    id: str
    static_id: str | None
    rack: str | None
    topics: tuple[str, ...]
    votes: tuple[str, ...] | None
    owned: int
    assigned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance, from its cause until this member worked with the new assignment.

    ``reason`` is the cause as text; ``change`` is the same as data, if this member led the group and compared two
    rebalances. Times are in seconds since 1970. Fields that this member cannot know are None: a native member knows
    few of them, and only the leader knows the other members.
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
    members: tuple[RebalanceMember, ...] | None = None
    given_up: tuple[TopicPartition, ...] = ()
    given_up_at: float | None = None
    taken: tuple[TopicPartition, ...] = ()
    taken_at: float | None = None
    lost: tuple[TopicPartition, ...] = ()
    lost_at: float | None = None
    change: GroupChange | None = None


class OngoingRebalance:
    """Collects what becomes known during a rebalance; ``finished`` makes the ``Rebalance`` of it.

    ``now`` is a monotonic clock. ``moment`` is the wall clock when the rebalance began, in seconds since 1970.
    ``known`` are fields of ``Rebalance``.
    """

    def __init__(self, membership: str, reason: Reason, *, now: float, moment: float) -> None:
        self.reason = reason
        self.known: dict[str, Any] = {}
        self._membership = membership
        self._began, self._moment = now, moment
        self._last = now
        self._phases: list[Phase] = []

    def explain(self, change: GroupChange) -> None:
        """The leader has found out what changed in the group."""
        self.reason = change.describe()
        self.known["change"] = change

    def phase(self, name: str, *, now: float) -> None:
        """The phase of this name ends now."""
        self._phases.append(Phase(name=name, seconds=round(now - self._last, 6)))
        self._last = now

    def gave_up(self, tps: Iterable[TopicPartition], *, now: float) -> None:
        self.known.update(given_up=tuple(sorted(tps)), given_up_at=self.at(now))

    def took(self, tps: Iterable[TopicPartition], *, now: float) -> None:
        self.known.update(taken=tuple(sorted(tps)), taken_at=self.at(now))

    def lost(self, tps: Iterable[TopicPartition], *, now: float) -> None:
        self.known.update(lost=tuple(sorted(tps)), lost_at=self.at(now))

    def at(self, now: float) -> float:
        """A time of the monotonic clock, in seconds since 1970."""
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
class GroupSnapshot:
    """What a leader remembers of a rebalance, to find out at the next one what has changed.

    ``topics`` are the topics of each member, ``partitions`` the number of partitions of each topic. ``pending`` means
    that some partitions waited for their old owners to revoke them.
    """

    members: frozenset[str]
    topics: Mapping[str, frozenset[str]]
    partitions: Mapping[str, int]
    pending: bool


def change_between(before: GroupSnapshot, after: GroupSnapshot) -> GroupChange | None:
    """What changed between two rebalances that the same member led; None if it sees no difference."""
    stayed = after.members & before.members
    change = GroupChange(
        joined=tuple(sorted(after.members - before.members)),
        gone=tuple(sorted(before.members - after.members)),
        subscriptions_changed=any(before.topics[member] != after.topics[member] for member in stayed),
        resized=tuple(
            sorted(topic for topic, count in after.partitions.items() if before.partitions.get(topic, count) != count)
        ),
    )
    if change != GroupChange():
        return change
    return GroupChange(handed_over=True) if before.pending else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A partition got a new owner at time ``at``, after ``seconds`` without one.

    ``source`` is the last owner. It and the seconds are None if the last owner did not report.
    """

    tp: TopicPartition
    owner: str
    at: float
    seconds: float | None
    source: str | None = None


def without_owner(moves: Iterable[tuple[float, str, str, TopicPartition]]) -> list[Handover]:
    """How long each partition had no owner.

    ``moves`` are what all members reported: (time, "given up" or "taken", member, partition). If the last owner of a
    partition did not report, the time without an owner is unknown, not zero.
    """
    free_since: dict[TopicPartition, tuple[float, str]] = {}
    found = []
    for at, what, member, tp in sorted(moves):
        if what == "given up":
            free_since[tp] = at, member
        else:
            since, source = free_since.pop(tp, (None, None))
            seconds = None if since is None else at - since
            found.append(Handover(tp=tp, owner=member, at=at, seconds=seconds, source=source))
    return found
