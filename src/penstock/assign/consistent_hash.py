"""``consistent-hash``: each partition has a fixed point on a hash ring, so a change of members moves few partitions.

It does not depend on the previous assignment: the names alone determine the result, even after all members have left.
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

# With more points per member, their arcs on the ring become more equal: with 128, they differ by about a tenth.
_POINTS = 128


@dataclass(frozen=True)
class ConsistentHash:
    """Each member has points on a ring, in proportion to its weight; a partition goes to the member of the next point.

    ``bound`` limits a member to that many times its fair share (rounded up) of the topics with the same subscribers;
    further partitions go to the next member on the ring. ``None`` means no limit. The points of a static member come
    from its static id, so a restart moves nothing.
    """

    bound: float | None = 1.25
    name: ClassVar[str] = "consistent-hash"

    def __post_init__(self) -> None:
        if self.bound is not None and not (math.isfinite(self.bound) and self.bound >= 1):
            raise ConfigError(
                f"ConsistentHash.bound={self.bound!r} leaves partitions without an owner.",
                hint="Use at least 1, such as 1.25 for a quarter above the fair share, or None for no limit.",
            )

    def assign(self, group: Group) -> Assignment:
        shares: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
        topics = assignable(group)
        by_subscribers: dict[tuple[int, ...], list[str]] = {}
        for topic, indexes in subscribers(group.members, topics).items():
            by_subscribers.setdefault(indexes, []).append(topic)
        for indexes, names in by_subscribers.items():
            tps = [(name, number) for name in names for number in range(group.topics[name].partitions)]
            self._place([group.members[index] for index in indexes], tps, shares)
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
