"""Exchanging partitions between members so that more of them are near, while everybody keeps as many as before."""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from penstock.assign.model import Group, Member
from penstock.assign.partition_index import assignable, in_member_order, racks_of, subscribers
from penstock.core.records.record import TopicPartition


def is_near(member: Member, racks: frozenset[str]) -> bool:
    """Whether a replica is in the member's rack; where either has none, it makes no difference."""
    return not member.rack or not racks or member.rack in racks


class _Kind(NamedTuple):
    """Partitions that are alike: who may have them, and their racks."""

    readers: tuple[int, ...]
    racks: frozenset[str]


@dataclass
class _Club:
    """Members that are alike, in rack and topics, with one of them as an example; and what they hold, with whom."""

    seat: int
    member: Member
    held: defaultdict[_Kind, list[tuple[int, TopicPartition]]]

    def may_have(self, kind: _Kind) -> bool:
        return self.seat in kind.readers

    def is_near(self, kind: _Kind) -> bool:
        return is_near(self.member, kind.racks)


class Exchange:
    """Goes on until no exchange of two partitions would bring one nearer to its member, and none further away."""

    def __init__(self, group: Group, shares: dict[str, list[TopicPartition]]) -> None:
        members = in_member_order(group.members)
        self._ids = [member.id for member in members]
        readers = subscribers(members, assignable(group))
        clubs: dict[tuple[str | None, frozenset[str]], _Club] = {}
        for seat, member in enumerate(members):
            alike = (member.rack, frozenset(member.topics))
            club = clubs.setdefault(alike, _Club(seat, member, defaultdict(list)))
            for tp in shares[member.id]:
                kind = _Kind(readers[tp[0]], racks_of(group.topics[tp[0]], tp[1]))
                club.held[kind].append((seat, tp))
        self._clubs = list(clubs.values())
        # Each round with an exchange brings a partition nearer, and there are so many of them.
        for _ in range(sum(map(len, shares.values()))):
            if not self._round():
                break

    def shares(self) -> dict[str, list[TopicPartition]]:
        shares: dict[str, list[TopicPartition]] = {member: [] for member in self._ids}
        for club in self._clubs:
            for held in club.held.values():
                for seat, tp in held:
                    shares[self._ids[seat]].append(tp)
        return {member: sorted(tps) for member, tps in shares.items()}

    def _round(self) -> bool:
        exchanged = False
        for giver in self._clubs:
            for kind in [kind for kind in giver.held if not giver.is_near(kind)]:
                for taker in self._clubs:
                    if taker.may_have(kind) and taker.is_near(kind):
                        exchanged |= self._exchange(giver, kind, taker)
        return exchanged

    def _exchange(self, giver: _Club, kind: _Kind, taker: _Club) -> bool:
        exchanged = False
        for other in list(taker.held):
            if other == kind or not giver.may_have(other) or (taker.is_near(other) and not giver.is_near(other)):
                continue
            there, back = giver.held[kind], taker.held[other]
            while there and back:
                (seat, tp), (other_seat, other_tp) = there.pop(), back.pop()
                taker.held[kind].append((other_seat, tp))
                giver.held[other].append((seat, other_tp))
                exchanged = True
        return exchanged
