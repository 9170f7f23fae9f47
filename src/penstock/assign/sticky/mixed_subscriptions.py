"""The sticky algorithm for members that subscribe to different topics: as even as the subscriptions allow."""

from collections.abc import Iterable, Sequence

from penstock.assign.model import Group, Member
from penstock.assign.partition_index import PartitionIndex, assignable, subscribers
from penstock.assign.sticky.balancing import Balancing
from penstock.assign.sticky.ownership import Fewest, Ownership
from penstock.assign.sticky.previous_owners import Claims
from penstock.assign.sticky.racks import Racks
from penstock.core.records.java_hash import utf16


def mixed_layout(group: Group, members: Sequence[Member]) -> PartitionIndex:
    """Topics with few subscribers come first, because they leave the least choice."""
    topics = assignable(group)
    readers = subscribers(members, topics)
    return PartitionIndex(group, sorted(topics, key=lambda topic: (len(readers[topic]), utf16(topic))))


class MixedShares:
    """Members keep what they owned; free partitions go to the members with the fewest; then moves improve the balance.

    Members are numbered in order of their ids. Among members with equally many partitions, the lowest number is first.
    """

    def __init__(self, members: Sequence[Member], layout: PartitionIndex, claims: Claims, racks: Racks) -> None:
        self._layout = layout
        self._racks = racks
        self._readers = subscribers(members, layout.topics)
        self._topic_of = [topic for topic in layout.topics for _ in range(layout.counts[topic])]
        self._ownership = Ownership(len(members), layout.total)
        must_give_up = self._keep(claims)
        fresh = not any(self._ownership.sizes)
        free = [number for number, owner in enumerate(self._ownership.owner) if owner < 0]
        self._give(free)
        self._even_out(free, claims, fresh=fresh, must_give_up=must_give_up)

    def shares(self) -> list[list[int]]:
        shares: list[list[int]] = [[] for _ in self._ownership.sizes]
        for number, owner in enumerate(self._ownership.owner):
            shares[owner].append(number)
        return shares

    def _keep(self, claims: Claims) -> bool:
        """Members keep what they may keep; returns whether any partition must be revoked."""
        must_give_up = False
        may = {topic: frozenset(readers) for topic, readers in self._readers.items()}
        for index, numbers in enumerate(claims.kept):
            for number in numbers:
                if index not in may[self._topic_of[number]] or self._racks.apart(index, number):
                    must_give_up = True
                else:
                    self._ownership.take(number, index)
        return must_give_up

    def _give(self, free: Iterable[int]) -> None:
        if self._racks.in_use:
            free = self._give_near(free)
        fewest: dict[tuple[int, ...], Fewest] = {}
        for number in free:
            readers = self._readers[self._topic_of[number]]
            if readers not in fewest:
                fewest[readers] = Fewest(readers, self._ownership)
            self._ownership.take(number, fewest[readers].find())

    def _give_near(self, free: Iterable[int]) -> list[int]:
        """Give each partition to a member in one of its racks; returns the partitions without such a member."""
        fewest: dict[tuple[tuple[int, ...], frozenset[str]], Fewest] = {}
        rest = []
        for number in free:
            key = (self._readers[self._topic_of[number]], self._racks.of_partition[number])
            if key not in fewest:
                near = [index for index in key[0] if not self._racks.apart(index, number)]
                fewest[key] = Fewest(near, self._ownership)
            if fewest[key]:
                self._ownership.take(number, fewest[key].find())
            else:
                rest.append(number)
        return rest

    def _even_out(self, free: list[int], claims: Claims, *, fresh: bool, must_give_up: bool) -> None:
        """Improve the balance, and undo moves that did not. If nothing must be revoked, try free partitions first."""
        choices = {topic: readers for topic, readers in self._readers.items() if len(readers) > 1}
        involved = sorted({index for readers in set(choices.values()) for index in readers})
        before = self._ownership.copy()
        if _range(before, involved) <= 1:
            return
        balancing = Balancing(self._ownership, self._layout, self._topic_of, choices, claims.stale)
        if not must_give_up:
            balancing.even_out(free)
        moved = balancing.even_out(range(self._layout.total))
        if moved and not fresh and _unevenness(self._ownership, involved) >= _unevenness(before, involved):
            self._ownership = before


def _range(ownership: Ownership, indexes: Sequence[int]) -> int:
    sizes = [ownership.sizes[index] for index in indexes]
    return max(sizes, default=0) - min(sizes, default=0)


def _unevenness(ownership: Ownership, indexes: Sequence[int]) -> int:
    """The sum of the differences between every two members."""
    sizes = sorted(ownership.sizes[index] for index in indexes)
    return sum((2 * at - len(sizes) + 1) * size for at, size in enumerate(sizes))
