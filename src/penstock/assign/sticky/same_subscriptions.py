"""The sticky algorithm for members that all subscribe to the same topics: quotas, and no unnecessary moves."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress

from penstock.assign.partition_index import PartitionIndex
from penstock.assign.sticky.previous_owners import Claims
from penstock.assign.sticky.racks import Racks


class EqualShares:
    """Every member gets ``least`` partitions, and ``extra`` members get one more.

    Members keep what they owned, up to their quota. All other partitions go in turn to members below their quota, first
    to members in the partition's racks. Members are numbered in order of their ids; ``order`` is the order in which
    they may keep one partition more. ``shares`` are the lists that make up each member's share. ``moving`` says who
    gets a partition that another member owned until now.
    """

    def __init__(self, order: list[int], layout: PartitionIndex, claims: Claims, racks: Racks) -> None:
        self._order = order
        self._layout = layout
        self._claims = claims
        self._racks = racks
        self.least, self.extra = divmod(layout.total, len(order))
        self.most = self.least + (self.extra > 0)
        self._over = 0  # members that have `most`, where that is more than `least`
        self._below: list[int] = []  # members with fewer than `least`
        self._at_least: list[int] = []  # members with `least` that may get one more
        self._given_up: dict[int, int] = {}
        self._kept: list[list[int]] = [[] for _ in order]
        self._gained: list[list[int]] = [[] for _ in order]
        self._dealt: list[list[Sequence[int]]] = [[] for _ in order]
        self._keep()
        free = self._free()
        self._below.sort()
        self._at_least.sort()
        if racks.in_use:
            free = self._deal_near(racks.rarest_first(free))
        self._deal(free)
        self.moving = self._moves()
        self.shares: list[list[Sequence[int]]] = [
            [part for part in (kept, gained, *dealt) if part]
            for kept, gained, dealt in zip(self._kept, self._gained, self._dealt, strict=True)
        ]

    def _keep(self) -> None:
        for index in self._order:
            had = self._rightly_had(index)
            quota = self.least
            if len(had) < self.least:
                self._below.append(index)
            elif self._over < self.extra:
                if len(had) >= self.most:
                    quota = self.most
                    self._count_one_over()
                else:
                    self._at_least.append(index)
            if len(had) > quota:
                self._sort_by_number(had)
                self._given_up.update((number, index) for number in had[quota:])
                del had[quota:]
            self._kept[index] = had

    def _rightly_had(self, index: int) -> list[int]:
        had = list(self._claims.kept[index])
        if self._racks.in_use:
            self._given_up.update((number, index) for number in had if self._racks.apart(index, number))
            had = [number for number in had if not self._racks.apart(index, number)]
        if self._claims.disputed:
            had = [number for number in had if number not in self._claims.disputed]
        return had

    def _sort_by_number(self, had: list[int]) -> None:
        """By the number within the topic, then by topic."""
        had.sort()
        had.sort(key=self._layout.within_topic().__getitem__)

    def _count_one_over(self) -> None:
        self._over += 1
        if self._over == self.extra:
            self._at_least.clear()

    def _free(self) -> Sequence[int]:
        everything = range(self._layout.total)
        if not any(self._kept):
            # Slices of a range are ranges: a million partitions are given out without creating a million integers.
            return everything
        free = bytearray(b"\1") * self._layout.total
        for number in chain.from_iterable(self._kept):
            free[number] = 0
        return list(compress(everything, free))

    def _deal_near(self, free: Sequence[int]) -> list[int]:
        """Give each partition to the next member with a replica in its rack; returns the remaining partitions."""
        below = Counter(self._racks.of_member[index] for index in self._below)
        turn, rest = 0, []
        for number in free:
            racks = self._racks.of_partition[number]
            at = self._next_near(self._below, turn, racks) if any(below[rack] for rack in racks) else None
            if at is not None:
                index = self._below[at]
                if self._give(index, number) < self.least:
                    at += 1
                else:
                    del self._below[at]
                    below[self._racks.of_member[index]] -= 1
                    if self._over < self.extra:
                        self._at_least.append(index)
                turn = at % len(self._below) if self._below else 0
            elif (at := self._next_near(self._at_least, 0, racks)) is not None:
                self._give(self._at_least.pop(at), number)
                self._count_one_over()
            else:
                rest.append(number)
        return rest

    def _next_near(self, indexes: list[int], turn: int, racks: frozenset[str]) -> int | None:
        rack_of = self._racks.of_member
        for at in chain(range(turn, len(indexes)), range(turn)):
            if rack_of[indexes[at]] in racks:
                return at
        return None

    def _deal(self, free: Sequence[int]) -> None:
        """Give one to each member below `least` in turn, until all have `least`; then one more to each that may."""
        at, round_ = 0, 0
        lacking = {index: self.least - self._size(index) for index in self._below}
        players = self._below
        while players:
            # Several rounds at once: as many as no member drops out of.
            until = min(lacking[index] for index in players)
            end = at + (until - round_) * len(players)
            for turn, index in enumerate(players):
                self._dealt[index].append(free[at + turn : end : len(players)])
            self._at_least.extend(index for index in players if lacking[index] == until)
            players = [index for index in players if lacking[index] > until]
            at, round_ = end, until
        for turn, index in enumerate(self._at_least[: len(free) - at], start=at):
            self._dealt[index].append(free[turn : turn + 1])

    def _give(self, index: int, number: int) -> int:
        self._gained[index].append(number)
        return self._size(index)

    def _size(self, index: int) -> int:
        return len(self._kept[index]) + len(self._gained[index])

    def _moves(self) -> dict[int, int]:
        given_up, disputed = self._given_up, self._claims.disputed
        if not given_up and not disputed:
            return {}
        return {
            number: index
            for index, (gained, dealt) in enumerate(zip(self._gained, self._dealt, strict=True))
            for number in chain(gained, *dealt)
            if given_up.get(number, index) != index or number in disputed
        }
