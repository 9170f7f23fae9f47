"""``consistent-hash``: each partition belongs to a place on a ring, so that a change of members moves only a few.

It needs no memory: the answer follows from the names alone, even after every member was gone.
"""

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

from penstock.assign.java_order import in_java_order
from penstock.assign.model import Assignment, Group, Member
from penstock.assign.partition_index import assignable, subscribers
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

# More points even out the arcs of the ring: with 128, the arcs of equal members differ by about a tenth.
_POINTS = 128


@dataclass(frozen=True)
class ConsistentHash:
    """Points of each member lie on a ring, the more the greater its weight; a partition goes to the next one after it.

    ``bound`` limits what a member takes to that many times its fair share (rounded up) of the topics that have the same
    subscribers; what is over goes on along the ring. ``None`` leaves it to chance. Static members are placed by their
    static ids, so that a restart moves nothing.
    """

    bound: float | None = 1.25
    name: ClassVar[str] = "consistent-hash"

    def __post_init__(self) -> None:
        if self.bound is not None and not (math.isfinite(self.bound) and self.bound >= 1):
            raise ConfigError(
                f"ConsistentHash.bound={self.bound!r} leaves partitions without a place.",
                hint="Use a number from 1, such as 1.25 for a quarter above the fair share, or None for no bound.",
            )

    def assign(self, group: Group) -> Assignment:
        shares: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
        topics = assignable(group)
        alike: dict[tuple[int, ...], list[str]] = {}
        for topic, seats in subscribers(group.members, topics).items():
            alike.setdefault(seats, []).append(topic)
        for seats, names in alike.items():
            tps = [(name, number) for name in names for number in range(group.topics[name].partitions)]
            self._place([group.members[seat] for seat in seats], tps, shares)
        return Assignment({member: sorted(tps) for member, tps in shares.items()})

    def _place(
        self, members: Sequence[Member], tps: list[TopicPartition], shares: dict[str, list[TopicPartition]]
    ) -> None:
        ring = _Ring(members)
        room = self._room(members, len(tps))
        for topic, number in tps:
            at = ring.after(_hash(f"{topic}\0{number}"))
            while room[ring.owner[at]] <= 0:
                at = (at + 1) % len(ring.owner)
            member = ring.owner[at]
            room[member] -= 1
            shares[member].append((topic, number))

    def _room(self, members: Sequence[Member], partitions: int) -> dict[str, int]:
        if self.bound is None:
            return {member.id: partitions for member in members}
        each = self.bound * partitions / math.fsum(member.weight for member in members)
        return {member.id: math.ceil(each * member.weight) for member in members}


class _Ring:
    def __init__(self, members: Sequence[Member]) -> None:
        by_name = {member.static_id or member.id: member for member in members}
        heaviest = max(member.weight for member in members)
        points = sorted(
            (_hash(f"{name}\0{point}"), by_name[name].id)
            for name in in_java_order(by_name)
            for point in range(max(1, round(_POINTS * by_name[name].weight / heaviest)))
        )
        self._points = [point for point, _ in points]
        self.owner = [owner for _, owner in points]

    def after(self, point: int) -> int:
        return bisect(self._points, point) % len(self._points)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
