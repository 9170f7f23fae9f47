"""A plan: which partitions an assignor would move in a group and why, how balanced it becomes, and what pauses."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from penstock.assign.model import Assignor, Group, Member
from penstock.assign.sticky.user_data import write_sticky
from penstock.core.records.record import TopicPartition

__all__ = ["Move", "Plan", "RebalancePause", "Side", "Spread", "plan", "remembering", "why_estimate"]

Reason = Literal["new", "owner left", "unsubscribed", "nearer", "balance", "exchange"]
"""Why a partition gets another owner.

- new: it had no owner.
- owner left: its owner is not a member any more.
- unsubscribed: its owner no longer subscribes to the topic.
- nearer: the new owner is in a rack of its replicas, and the old one is not.
- balance: the old owner had more partitions than it gets.
- exchange: none of these; the old owner gets other partitions instead.
"""

LIBRDKAFKA = frozenset({"range", "roundrobin", "cooperative-sticky"})
"""Assignors that librdkafka implements under the names of the Java client, but with other algorithms."""

HEARTBEAT_SECONDS = 3.0
"""The default heartbeat interval: a member may learn of a rebalance this much later."""


@dataclass(frozen=True, slots=True)
class Move:
    tp: TopicPartition
    source: str | None
    target: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly something is spread over the members."""

    least: float
    most: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> "Spread":
        if not figures:
            return cls(0, 0, 0.0, 0.0)
        mean = math.fsum(figures) / len(figures)
        deviation = math.sqrt(math.fsum((figure - mean) ** 2 for figure in figures) / len(figures))
        return cls(min(figures), max(figures), mean, deviation)


@dataclass(frozen=True, slots=True)
class RebalancePause:
    """How many partitions pause while the group rebalances, and how many rebalances it takes.

    ``seconds`` is the longest pause until all members know of the rebalance, ``records`` how many records producers
    write to these partitions meanwhile. The time that handlers need to finish comes on top.
    """

    partitions: int
    rebalances: int
    seconds: float = 0.0
    records: float = 0.0


@dataclass(frozen=True)
class Side:
    """The group before or after the change: the partitions, the lag and the records per second of each member.

    ``far`` is the number of partitions read across racks: all racks are known, and no replica is in the member's rack.
    """

    partitions: Mapping[str, tuple[TopicPartition, ...]]
    lags: Mapping[str, float]
    rates: Mapping[str, float]
    far: int

    @property
    def spread(self) -> Spread:
        return Spread.of([len(tps) for tps in self.partitions.values()])

    @property
    def lag(self) -> Spread:
        return Spread.of(list(self.lags.values()))

    @property
    def rate(self) -> Spread:
        return Spread.of(list(self.rates.values()))


@dataclass(frozen=True)
class Plan:
    """``eager`` and ``cooperative`` say what the change would pause with each of the two protocols.

    ``beyond_need`` counts moves that are not needed for the new numbers of partitions: assignors that ignore the
    previous assignment, or that optimize something else, cause them. ``estimate`` says why the group may move other
    partitions than planned; None if the plan is exact (see ``why_estimate``).
    """

    assignor: str
    before: Side
    after: Side
    moves: tuple[Move, ...]
    beyond_need: int
    eager: RebalancePause
    cooperative: RebalancePause
    estimate: str | None = None


def why_estimate(assignor: str, *, all_open: bool, by_broker: bool) -> str | None:
    """Why a group with this assignor may move other partitions than planned; None if it will not.

    Plans use the algorithms of Kafka's Java client, as self-managed members do. A group does not say which library its
    members use, and librdkafka gives members the same numbers of partitions, but other partitions.
    """
    if by_broker:
        return (
            "the broker divides the partitions of this group with its own algorithm. Expect about as many moves, "
            "perhaps of other partitions"
        )
    if assignor in LIBRDKAFKA and not all_open:
        return (
            f"the plan uses {assignor} as in Kafka's Java client. If a member with librdkafka leads the group (such as "
            "a native member of Penstock), expect as many moves, but of other partitions"
        )
    return None


def plan(
    group: Group, assignor: Assignor, *, changed: Group | None = None, heartbeat: float = HEARTBEAT_SECONDS
) -> Plan:
    """What the assignor would do to the group as it is, or as it would be after a change (see ``what_if``)."""
    target = remembering(group if changed is None else changed)
    after = assignor.assign(target).settled()
    owners = {tp: member.id for member in group.members for tp in member.owned}
    moves = tuple(_moves(owners, after.owners(), target))
    there = {member.id for member in target.members}
    changes = bool(moves) or there != {member.id for member in group.members}
    taken = [move.tp for move in moves if move.source is not None]
    given_up = any(move.source in there for move in moves)
    return Plan(
        assignor=assignor.name,
        before=_side(group, {member.id: member.owned for member in group.members}),
        after=_side(target, after.partitions),
        moves=moves,
        beyond_need=_beyond_need(moves, owners, after.partitions),
        eager=_pause(group, owners if changes else (), int(changes), heartbeat),
        # Partitions that a member must revoke first get their new owners in a second rebalance.
        cooperative=_pause(group, taken, int(changes) + given_up, heartbeat),
    )


def _pause(group: Group, tps: Collection[TopicPartition], rebalances: int, heartbeat: float) -> RebalancePause:
    seconds = heartbeat if tps else 0.0
    waiting = math.fsum(_figure(group, tp, "rate") for tp in tps) * seconds
    return RebalancePause(len(tps), rebalances, seconds, waiting)


def _beyond_need(
    moves: Sequence[Move],
    owners: Mapping[TopicPartition, str],
    after: Mapping[str, Sequence[TopicPartition]],
) -> int:
    """Moves between members that stay, minus those that are needed to reduce a member's number of partitions."""
    before = Counter(owners.values())
    between = Counter(move.source for move in moves if move.reason in {"nearer", "balance", "exchange"})
    return sum(
        max(0, count - max(0, before[source] - len(after[source])))
        for source, count in between.items()
        if source is not None
    )


def remembering(group: Group) -> Group:
    """The group with each member's owned partitions also in its user data, where the eager ``sticky`` reads them."""
    return Group(tuple(_remembering(member) for member in group.members), group.topics)


def _remembering(member: Member) -> Member:
    if member.user_data is not None or not member.owned:
        return member
    return replace(member, user_data=write_sticky(member.owned, member.generation or 0))


def _moves(before: Mapping[TopicPartition, str], after: Mapping[TopicPartition, str], group: Group) -> Iterable[Move]:
    members = {member.id: member for member in group.members}
    had, gets = Counter(before.values()), Counter(after.values())
    for tp, target in sorted(after.items()):
        source = before.get(tp)
        if source is None:
            yield Move(tp, None, target, "new")
        elif source not in members:
            yield Move(tp, source, target, "owner left")
        elif source != target:
            reason = _reason(group, tp, members[source], members[target])
            yield Move(tp, source, target, reason or ("balance" if had[source] > gets[source] else "exchange"))


def _reason(group: Group, tp: TopicPartition, source: Member, target: Member) -> Reason | None:
    if tp[0] not in source.topics:
        return "unsubscribed"
    nearer = _is_far(group, source, tp) and target.rack is not None and not _is_far(group, target, tp)
    return "nearer" if nearer else None


def _side(group: Group, partitions: Mapping[str, Sequence[TopicPartition]]) -> Side:
    def sums(figure: Literal["lag", "rate"]) -> dict[str, float]:
        return {member: math.fsum(_figure(group, tp, figure) for tp in tps) for member, tps in partitions.items()}

    return Side(
        partitions={member: tuple(tps) for member, tps in partitions.items()},
        lags=sums("lag"),
        rates=sums("rate"),
        far=sum(_is_far(group, member, tp) for member in group.members for tp in partitions.get(member.id, ())),
    )


def _figure(group: Group, tp: TopicPartition, name: Literal["lag", "rate"]) -> float:
    """The lag or rate of a partition; 0 if it is unknown."""
    topic = group.topics.get(tp[0])
    known: Sequence[float] = () if topic is None else topic.lag if name == "lag" else topic.rate
    return known[tp[1]] if tp[1] < len(known) else 0.0


def _is_far(group: Group, member: Member, tp: TopicPartition) -> bool:
    topic = group.topics.get(tp[0])
    racks = topic.racks[tp[1]] if topic and tp[1] < len(topic.racks) else frozenset()
    return bool(member.rack and racks) and member.rack not in racks
