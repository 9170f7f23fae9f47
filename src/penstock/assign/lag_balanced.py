"""``lag-balanced``: members get equally much work instead of equally many partitions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace
from typing import ClassVar, Literal

from penstock.assign.model import Assignment, Group
from penstock.assign.partition_index import assignable, in_member_order, subscribers
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

_MOVES_EACH = 4


@dataclass(frozen=True)
class LagBalanced:
    """Work is a partition's ``lag``, ``rate`` or ``cost``; a member's load is its work divided by its weight.

    Members keep what they had. The rest goes to whoever is loaded least, the largest first. Then single partitions move
    from the most loaded to the least loaded that may have them, as long as that helps and somebody has more than
    ``tolerance`` above the average: small differences are not worth a move.
    """

    by: Literal["lag", "rate", "cost"] = "lag"
    tolerance: float = 0.1
    name: ClassVar[str] = "lag-balanced"

    def __post_init__(self) -> None:
        if self.by not in {"lag", "rate", "cost"}:
            raise ConfigError(f"LagBalanced.by={self.by!r} is no measure of work.", hint='Use "lag", "rate" or "cost".')
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ConfigError(
                f"LagBalanced.tolerance={self.tolerance!r} is not a share.", hint="Use a number from 0, such as 0.1."
            )

    @property
    def needs_lag(self) -> bool:
        """In a live group the leader then looks up the lag first."""
        return self.by == "lag"

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        work = {place: self._work(group, place) for place in group.places()}
        readers = subscribers(members, assignable(group))
        loads = _Loads(weights=[member.weight for member in members], readers=readers, work=work)
        for seat, member in enumerate(members):
            for place in member.owned:
                loads.keep(place, seat)
        loads.give_rest()
        loads.even_out(self.tolerance)
        by_id = {member.id: sorted(places) for member, places in zip(members, loads.places, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})

    def _work(self, group: Group, place: TopicPartition) -> float:
        """At least one, so that partitions without any work are spread as well."""
        topic = group.topics[place[0]]
        figures: Sequence[float] = {"lag": topic.lag, "rate": topic.rate, "cost": topic.cost}[self.by]
        return max(1.0, figures[place[1]]) if figures else 1.0


class _Loads:
    """Work and loads by the members' positions."""

    def __init__(
        self, *, weights: list[float], readers: dict[str, tuple[int, ...]], work: dict[TopicPartition, float]
    ) -> None:
        self.places: list[set[TopicPartition]] = [set() for _ in weights]
        self._weights = weights
        self._readers = readers
        self._work = work
        self._done = [0.0] * len(weights)
        self._owned: set[TopicPartition] = set()

    def keep(self, place: TopicPartition, seat: int) -> None:
        if place in self._work and place not in self._owned and seat in self._readers[place[0]]:
            self._put(place, seat)

    def give_rest(self) -> None:
        rest = [place for place in self._work if place not in self._owned]
        heaps: dict[tuple[int, ...], list[tuple[float, int]]] = {}
        for place in sorted(rest, key=lambda place: (-self._work[place], place)):
            readers = self._readers[place[0]]
            if readers not in heaps:
                heaps[readers] = sorted((self._load(seat), seat) for seat in readers)
            self._put(place, self._least_loaded(heaps[readers]))

    def _least_loaded(self, heap: list[tuple[float, int]]) -> int:
        """Loads only grow here, so an entry that is no longer true is too low, and is put right at the top."""
        while True:
            load, seat = heap[0]
            if load == self._load(seat):
                return seat
            heapreplace(heap, (self._load(seat), seat))

    def even_out(self, tolerance: float) -> None:
        """Each move lowers the higher of two loads, so this comes to an end; the bound is for rounding errors."""
        limit = sum(self._done) / sum(self._weights) * (1 + tolerance)
        high = {seat for seat in range(len(self._done)) if self._load(seat) > limit}
        for _ in range(_MOVES_EACH * len(self._work)):
            if not high:
                break
            seat = max(high, key=lambda seat: (self._load(seat), -seat))
            move = self._best_move(seat)
            if move is None:
                high.remove(seat)
                continue
            place, taker = move
            self._take(place, seat)
            self._put(place, taker)
            high = {other for other in (*high, taker) if self._load(other) > limit}

    def _best_move(self, seat: int) -> tuple[TopicPartition, int] | None:
        """The partition and its taker that leave the lower maximum of the two loads."""
        best, found = self._load(seat), None
        takers: dict[tuple[int, ...], int | None] = {}
        for place in sorted(self.places[seat], key=lambda place: (-self._work[place], place)):
            readers = self._readers[place[0]]
            if readers not in takers:
                others = (other for other in readers if other != seat)
                takers[readers] = min(others, key=lambda other: (self._load(other), other), default=None)
            taker = takers[readers]
            if taker is not None:
                work = self._work[place]
                outcome = max(
                    (self._done[seat] - work) / self._weights[seat], (self._done[taker] + work) / self._weights[taker]
                )
                if outcome < best:
                    best, found = outcome, (place, taker)
        return found

    def _load(self, seat: int) -> float:
        return self._done[seat] / self._weights[seat]

    def _put(self, place: TopicPartition, seat: int) -> None:
        self._owned.add(place)
        self.places[seat].add(place)
        self._done[seat] += self._work[place]

    def _take(self, place: TopicPartition, seat: int) -> None:
        self.places[seat].remove(place)
        self._done[seat] -= self._work[place]
