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
        work = {tp: self._work(group, tp) for tp in group.topic_partitions()}
        readers = subscribers(members, assignable(group))
        loads = _Loads(weights=[member.weight for member in members], readers=readers, work=work)
        for seat, member in enumerate(members):
            for tp in member.owned:
                loads.keep(tp, seat)
        loads.give_rest()
        loads.even_out(self.tolerance)
        by_id = {member.id: sorted(tps) for member, tps in zip(members, loads.tps, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})

    def _work(self, group: Group, tp: TopicPartition) -> float:
        """At least one, so that partitions without any work are spread as well."""
        topic = group.topics[tp[0]]
        figures: Sequence[float] = {"lag": topic.lag, "rate": topic.rate, "cost": topic.cost}[self.by]
        return max(1.0, figures[tp[1]]) if figures else 1.0


class _Loads:
    """Work and loads by the members' positions."""

    def __init__(
        self, *, weights: list[float], readers: dict[str, tuple[int, ...]], work: dict[TopicPartition, float]
    ) -> None:
        self.tps: list[set[TopicPartition]] = [set() for _ in weights]
        self._weights = weights
        self._readers = readers
        self._work = work
        self._done = [0.0] * len(weights)
        self._owned: set[TopicPartition] = set()

    def keep(self, tp: TopicPartition, seat: int) -> None:
        if tp in self._work and tp not in self._owned and seat in self._readers[tp[0]]:
            self._put(tp, seat)

    def give_rest(self) -> None:
        rest = [tp for tp in self._work if tp not in self._owned]
        heaps: dict[tuple[int, ...], list[tuple[float, int]]] = {}
        for tp in sorted(rest, key=lambda tp: (-self._work[tp], tp)):
            readers = self._readers[tp[0]]
            if readers not in heaps:
                heaps[readers] = sorted((self._load(seat), seat) for seat in readers)
            self._put(tp, self._least_loaded(heaps[readers]))

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
            tp, taker = move
            self._take(tp, seat)
            self._put(tp, taker)
            high = {other for other in (*high, taker) if self._load(other) > limit}

    def _best_move(self, seat: int) -> tuple[TopicPartition, int] | None:
        """The partition and its taker that leave the lower maximum of the two loads."""
        best, found = self._load(seat), None
        takers: dict[tuple[int, ...], int | None] = {}
        for tp in sorted(self.tps[seat], key=lambda tp: (-self._work[tp], tp)):
            readers = self._readers[tp[0]]
            if readers not in takers:
                others = (other for other in readers if other != seat)
                takers[readers] = min(others, key=lambda other: (self._load(other), other), default=None)
            taker = takers[readers]
            if taker is not None:
                work = self._work[tp]
                outcome = max(
                    (self._done[seat] - work) / self._weights[seat], (self._done[taker] + work) / self._weights[taker]
                )
                if outcome < best:
                    best, found = outcome, (tp, taker)
        return found

    def _load(self, seat: int) -> float:
        return self._done[seat] / self._weights[seat]

    def _put(self, tp: TopicPartition, seat: int) -> None:
        self._owned.add(tp)
        self.tps[seat].add(tp)
        self._done[seat] += self._work[tp]

    def _take(self, tp: TopicPartition, seat: int) -> None:
        self.tps[seat].remove(tp)
        self._done[seat] -= self._work[tp]
