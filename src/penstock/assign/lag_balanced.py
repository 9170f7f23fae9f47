"""``lag-balanced``: balances the work of the members instead of their numbers of partitions."""

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
    """The work of a partition is its ``lag``, ``rate`` or ``cost``; a member's load is its work divided by its weight.

    Members keep what they owned. The other partitions, largest first, go to the member with the lowest load. Then
    partitions move from the member with the highest load to the subscriber with the lowest, while that helps and a
    member is more than the fraction ``tolerance`` above the average: small differences are not worth a move.
    """

    by: Literal["lag", "rate", "cost"] = "lag"
    tolerance: float = 0.1
    name: ClassVar[str] = "lag-balanced"

    def __post_init__(self) -> None:
        if self.by not in {"lag", "rate", "cost"}:
            raise ConfigError(f"LagBalanced.by={self.by!r} is unknown.", hint='Use "lag", "rate" or "cost".')
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ConfigError(
                f"LagBalanced.tolerance={self.tolerance!r} is not a fraction.", hint="Use at least 0, such as 0.1."
            )

    @property
    def needs_lag(self) -> bool:
        """If True, the leader of a live group fetches the lag before it calls ``assign``."""
        return self.by == "lag"

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        work = {tp: self._work(group, tp) for tp in group.topic_partitions()}
        readers = subscribers(members, assignable(group))
        loads = _Loads(weights=[member.weight for member in members], readers=readers, work=work)
        for index, member in enumerate(members):
            for tp in member.owned:
                loads.keep(tp, index)
        loads.give_rest()
        loads.even_out(self.tolerance)
        by_id = {member.id: sorted(tps) for member, tps in zip(members, loads.tps, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})

    def _work(self, group: Group, tp: TopicPartition) -> float:
        """The work of a partition; at least 1, so that partitions without work are balanced too."""
        topic = group.topics[tp[0]]
        figures: Sequence[float] = {"lag": topic.lag, "rate": topic.rate, "cost": topic.cost}[self.by]
        return max(1.0, figures[tp[1]]) if figures else 1.0


class _Loads:
    """The partitions and the work of each member, by the member's index."""

    def __init__(
        self, *, weights: list[float], readers: dict[str, tuple[int, ...]], work: dict[TopicPartition, float]
    ) -> None:
        self.tps: list[set[TopicPartition]] = [set() for _ in weights]
        self._weights = weights
        self._readers = readers
        self._work = work
        self._done = [0.0] * len(weights)
        self._owned: set[TopicPartition] = set()

    def keep(self, tp: TopicPartition, index: int) -> None:
        if tp in self._work and tp not in self._owned and index in self._readers[tp[0]]:
            self._put(tp, index)

    def give_rest(self) -> None:
        rest = [tp for tp in self._work if tp not in self._owned]
        heaps: dict[tuple[int, ...], list[tuple[float, int]]] = {}
        for tp in sorted(rest, key=lambda tp: (-self._work[tp], tp)):
            readers = self._readers[tp[0]]
            if readers not in heaps:
                heaps[readers] = sorted((self._load(index), index) for index in readers)
            self._put(tp, self._least_loaded(heaps[readers]))

    def _least_loaded(self, heap: list[tuple[float, int]]) -> int:
        """The member with the lowest load. Loads only grow here: old entries are too low and corrected at the top."""
        while True:
            load, index = heap[0]
            if load == self._load(index):
                return index
            heapreplace(heap, (self._load(index), index))

    def even_out(self, tolerance: float) -> None:
        """Move partitions. Each move lowers the higher of two loads, so this ends; the limit is for rounding errors."""
        limit = sum(self._done) / sum(self._weights) * (1 + tolerance)
        high = {index for index in range(len(self._done)) if self._load(index) > limit}
        for _ in range(_MOVES_EACH * len(self._work)):
            if not high:
                break
            index = max(high, key=lambda index: (self._load(index), -index))
            move = self._best_move(index)
            if move is None:
                high.remove(index)
                continue
            tp, taker = move
            self._take(tp, index)
            self._put(tp, taker)
            high = {other for other in (*high, taker) if self._load(other) > limit}

    def _best_move(self, index: int) -> tuple[TopicPartition, int] | None:
        """The partition and its new owner for which the higher of the two loads becomes lowest."""
        best, found = self._load(index), None
        takers: dict[tuple[int, ...], int | None] = {}
        for tp in sorted(self.tps[index], key=lambda tp: (-self._work[tp], tp)):
            readers = self._readers[tp[0]]
            if readers not in takers:
                others = (other for other in readers if other != index)
                takers[readers] = min(others, key=lambda other: (self._load(other), other), default=None)
            taker = takers[readers]
            if taker is not None:
                work = self._work[tp]
                outcome = max(
                    (self._done[index] - work) / self._weights[index], (self._done[taker] + work) / self._weights[taker]
                )
                if outcome < best:
                    best, found = outcome, (tp, taker)
        return found

    def _load(self, index: int) -> float:
        return self._done[index] / self._weights[index]

    def _put(self, tp: TopicPartition, index: int) -> None:
        self._owned.add(tp)
        self.tps[index].add(tp)
        self._done[index] += self._work[tp]

    def _take(self, tp: TopicPartition, index: int) -> None:
        self.tps[index].remove(tp)
        self._done[index] -= self._work[tp]
