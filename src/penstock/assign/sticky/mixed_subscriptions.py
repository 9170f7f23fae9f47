"""Sticky sharing where members subscribe to different topics: as even as the subscriptions allow."""

from collections.abc import Iterable, Sequence

from penstock.assign.model import Group, Member
from penstock.assign.partition_index import Layout, assignable, subscribers
from penstock.assign.sticky.balancing import Balancing
from penstock.assign.sticky.ownership import Fewest, Ownership
from penstock.assign.sticky.previous_owners import Claims
from penstock.assign.sticky.racks import Racks
from penstock.core.records.java_hash import utf16


def mixed_layout(group: Group, members: Sequence[Member]) -> Layout:
    """Topics with few subscribers first: there is the least choice."""
    topics = assignable(group)
    readers = subscribers(members, topics)
    return Layout(group, sorted(topics, key=lambda topic: (len(readers[topic]), utf16(topic))))


class MixedShares:
    """Members keep what they had; the rest goes to whoever has least; then partitions move while that evens things out.

    Members are numbered in order of their ids, which settles who comes first among those that have equally many.
    """

    def __init__(self, members: Sequence[Member], layout: Layout, claims: Claims, racks: Racks) -> None:
        self._layout = layout
        self._racks = racks
        self._readers = subscribers(members, layout.topics)
        self._topic_of = [topic for topic in layout.topics for _ in range(layout.counts[topic])]
        self._hands = Ownership(len(members), layout.total)
        must_give_up = self._keep(claims)
        fresh = not any(self._hands.sizes)
        free = [number for number, owner in enumerate(self._hands.owner) if owner < 0]
        self._give(free)
        self._even_out(free, claims, fresh=fresh, must_give_up=must_give_up)

    def shares(self) -> list[list[int]]:
        shares: list[list[int]] = [[] for _ in self._hands.sizes]
        for number, owner in enumerate(self._hands.owner):
            shares[owner].append(number)
        return shares

    def _keep(self, claims: Claims) -> bool:
        """Members keep what they may; returns whether any of it has to be given up."""
        must_give_up = False
        may = {topic: frozenset(readers) for topic, readers in self._readers.items()}
        for seat, numbers in enumerate(claims.kept):
            for number in numbers:
                if seat not in may[self._topic_of[number]] or self._racks.apart(seat, number):
                    must_give_up = True
                else:
                    self._hands.take(number, seat)
        return must_give_up

    def _give(self, free: Iterable[int]) -> None:
        if self._racks.in_use:
            free = self._give_near(free)
        fewest: dict[tuple[int, ...], Fewest] = {}
        for number in free:
            readers = self._readers[self._topic_of[number]]
            if readers not in fewest:
                fewest[readers] = Fewest(readers, self._hands)
            self._hands.take(number, fewest[readers].seat())

    def _give_near(self, free: Iterable[int]) -> list[int]:
        """Only to members near it; returns what nobody is near to."""
        fewest: dict[tuple[tuple[int, ...], frozenset[str]], Fewest] = {}
        rest = []
        for number in free:
            key = (self._readers[self._topic_of[number]], self._racks.of_partition[number])
            if key not in fewest:
                near = [seat for seat in key[0] if not self._racks.apart(seat, number)]
                fewest[key] = Fewest(near, self._hands)
            if fewest[key]:
                self._hands.take(number, fewest[key].seat())
            else:
                rest.append(number)
        return rest

    def _even_out(self, free: list[int], claims: Claims, *, fresh: bool, must_give_up: bool) -> None:
        """Where nothing has to be given up, try with the new partitions alone first; undo what did not help."""
        choices = {topic: readers for topic, readers in self._readers.items() if len(readers) > 1}
        involved = sorted({seat for readers in set(choices.values()) for seat in readers})
        before = self._hands.copy()
        if _range(before, involved) <= 1:
            return
        evening = Balancing(self._hands, self._layout, self._topic_of, choices, claims.stale)
        if not must_give_up:
            evening.even_out(free)
        moved = evening.even_out(range(self._layout.total))
        if moved and not fresh and _unevenness(self._hands, involved) >= _unevenness(before, involved):
            self._hands = before


def _range(ownership: Ownership, seats: Sequence[int]) -> int:
    sizes = [ownership.sizes[seat] for seat in seats]
    return max(sizes, default=0) - min(sizes, default=0)


def _unevenness(ownership: Ownership, seats: Sequence[int]) -> int:
    """The sum of the differences between every two members."""
    sizes = sorted(ownership.sizes[seat] for seat in seats)
    return sum((2 * at - len(sizes) + 1) * size for at, size in enumerate(sizes))
