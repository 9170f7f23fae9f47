"""Exchanges partitions between members so that more are read within a rack; each member keeps its number of partitions.

A partition is *near* to a member if one of its replicas is in the member's rack.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from penstock.assign.model import Group, Member
from penstock.assign.partition_index import assignable, in_member_order, racks_of, subscribers
from penstock.core.records.record import TopicPartition


def is_near(member: Member, racks: frozenset[str]) -> bool:
    """Whether a replica is in the member's rack; also True if the member or the partition has no rack."""
    return not member.rack or not racks or member.rack in racks


class _PartitionClass(NamedTuple):
    """Interchangeable partitions: they have the same subscribers (by index) and the same racks."""

    readers: tuple[int, ...]
    racks: frozenset[str]


@dataclass
class _MemberClass:
    """Interchangeable members: they have the same rack and topics.

    ``index`` and ``member`` are one of them. ``held`` are the partitions of all of them, each with its owner's index.
    """

    index: int
    member: Member
    held: defaultdict[_PartitionClass, list[tuple[int, TopicPartition]]]

    def may_have(self, kind: _PartitionClass) -> bool:
        return self.index in kind.readers

    def is_near(self, kind: _PartitionClass) -> bool:
        return is_near(self.member, kind.racks)


class Exchange:
    """Exchanges pairs of partitions until no exchange makes one partition near without making the other one far."""

    def __init__(self, group: Group, shares: dict[str, list[TopicPartition]]) -> None:
        members = in_member_order(group.members)
        self._ids = [member.id for member in members]
        readers = subscribers(members, assignable(group))
        classes: dict[tuple[str | None, frozenset[str]], _MemberClass] = {}
        for index, member in enumerate(members):
            alike = (member.rack, frozenset(member.topics))
            found = classes.setdefault(alike, _MemberClass(index, member, defaultdict(list)))
            for tp in shares[member.id]:
                kind = _PartitionClass(readers[tp[0]], racks_of(group.topics[tp[0]], tp[1]))
                found.held[kind].append((index, tp))
        self._classes = list(classes.values())
        # Each round with an exchange makes at least one partition near, so this many rounds are enough.
        for _ in range(sum(map(len, shares.values()))):
            if not self._round():
                break

    def shares(self) -> dict[str, list[TopicPartition]]:
        shares: dict[str, list[TopicPartition]] = {member: [] for member in self._ids}
        for members in self._classes:
            for held in members.held.values():
                for index, tp in held:
                    shares[self._ids[index]].append(tp)
        return {member: sorted(tps) for member, tps in shares.items()}

    def _round(self) -> bool:
        exchanged = False
        for giver in self._classes:
            for kind in [kind for kind in giver.held if not giver.is_near(kind)]:
                for taker in self._classes:
                    if taker.may_have(kind) and taker.is_near(kind):
                        exchanged |= self._exchange(giver, kind, taker)
        return exchanged

    def _exchange(self, giver: _MemberClass, kind: _PartitionClass, taker: _MemberClass) -> bool:
        exchanged = False
        for other in list(taker.held):
            if other == kind or not giver.may_have(other) or (taker.is_near(other) and not giver.is_near(other)):
                continue
            there, back = giver.held[kind], taker.held[other]
            while there and back:
                (index, tp), (other_index, other_tp) = there.pop(), back.pop()
                taker.held[kind].append((other_index, tp))
                giver.held[other].append((index, other_tp))
                exchanged = True
        return exchanged
