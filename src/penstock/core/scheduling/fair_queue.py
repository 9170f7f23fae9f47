"""Whose lane is next, with ``fair_by=`` and ``priority=``: tenants take turns, and higher priorities go first.

Tenants have a virtual time, as in self-clocked weighted fair queuing (Golestani, 1994). A tenant's ``turn`` is when its
next record would end if each tenant were served at the speed of its weight, and the tenant with the earliest turn is
next. A tenant that comes back after a pause begins at the present, so it saves up nothing. Between two records of a
tenant, each other one gets about one record, by weight.

Within a tenant, the highest priority is next. But while lower ones wait, every tenth record is the one that has waited
longest among them, so none starves.

Each record costs O(log n) for n tenants with records that are ready. A tenant without such records is forgotten at its
next turn.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from penstock.core.scheduling.lanes import AnyRecord, Lane, LaneRun

LOWEST, HIGHEST = -9, 9
"""Priorities below and above count as these."""

# So many records of a higher priority run for each one of a lower priority that waits.
_HIGHER_FOR_EACH_LOWER = 9


class ReadyLanes(Protocol):
    """The lanes that may run now. Without fairness it is a deque."""

    def append(self, lane: Lane, /) -> None: ...

    def extend(self, lanes: Iterable[Lane], /) -> None: ...

    def popleft(self) -> Lane: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Lane]: ...


@dataclass(frozen=True)
class Fairness:
    """Which tenant a record belongs to, its priority, and how large a tenant's share is compared with others."""

    tenant_of: Callable[[AnyRecord], Hashable] = lambda _record: None
    priority_of: Callable[[AnyRecord], int] = lambda _record: 0
    weight_of: Callable[[Hashable], float] = lambda _tenant: 1.0


@dataclass(eq=False, slots=True)
class _Tenant:
    name: Hashable
    cost: float  # of one record, in virtual time
    turn: float
    lanes: dict[int, deque[tuple[int, Lane]]] = field(default_factory=dict)  # numbered, by priority
    entry: tuple[float, int, "_Tenant"] | None = None  # the valid entry in the heap
    passed: int = 0  # records that ran while some of a lower priority waited, less those that ran for that reason

    def pop(self) -> tuple[Lane, int]:
        """The lane that is next, and what each of its records adds to ``passed``."""
        priority, adds = max(self.lanes), 0
        if len(self.lanes) == 1:
            self.passed = 0
        elif self.passed < _HIGHER_FOR_EACH_LOWER:
            adds = 1
        else:
            lower = (each for each in self.lanes if each != priority)
            priority, adds = min(lower, key=lambda each: self.lanes[each][0][0]), -_HIGHER_FOR_EACH_LOWER
        lanes = self.lanes[priority]
        lane = lanes.popleft()[1]
        if not lanes:
            del self.lanes[priority]
        return lane, adds


@dataclass(slots=True)
class _Taken:
    tenant: _Tenant
    lane: Lane
    adds: int


class FairQueue:
    """Ready lanes in the order of fair turns. ``settle`` says how many records were taken from the lanes.

    A lane belongs to the tenant and the priority of its first waiting record.
    """

    def __init__(self, fairness: Fairness) -> None:
        self._fairness = fairness
        self._arrived: list[Lane] = []  # their first record may arrive after they do
        self._emptied: list[Lane] = []  # their records were dropped before their turn
        self._tenants: dict[Hashable, _Tenant] = {}
        self._turns: list[tuple[float, int, _Tenant]] = []
        self._numbers = count()
        self._sorted = 0  # lanes of tenants
        self._now = 0.0  # the turn that was taken last
        self._settled = 0.0  # the same, at the last call of ``settle``
        self._taken: list[_Taken] = []

    def append(self, lane: Lane) -> None:
        self._arrived.append(lane)

    def extend(self, lanes: Iterable[Lane]) -> None:
        self._arrived.extend(lanes)

    def __len__(self) -> int:
        return len(self._arrived) + len(self._emptied) + self._sorted

    def __iter__(self) -> Iterator[Lane]:
        for tenant in self._tenants.values():
            for lanes in tenant.lanes.values():
                yield from (lane for _, lane in lanes)
        yield from (*self._arrived, *self._emptied)

    @property
    def known_tenants(self) -> int:
        """How many tenants have a state."""
        return len(self._tenants)

    def popleft(self) -> Lane:
        """The lane whose turn it is. It may be empty, if its records were dropped."""
        self._sort_in()
        if self._emptied:
            return self._emptied.pop()
        while True:
            entry = heappop(self._turns)
            tenant = entry[2]
            if tenant.entry is not entry:
                continue
            tenant.entry = None
            if tenant.lanes:
                break
            del self._tenants[tenant.name]
        self._now = max(self._now, tenant.turn)
        lane, adds = tenant.pop()
        self._sorted -= 1
        if lane.waiting:
            self._taken.append(_Taken(tenant, lane, adds))
            self._charge(tenant, 1, adds)
        else:
            self._charge(tenant, 0, 0)
        return lane

    def settle(self, runs: Sequence[LaneRun]) -> None:
        """These runs were taken from the lanes that were popped since the last call; each was charged one record."""
        if len(self._taken) != len(runs) or any(len(run.records) > 1 for run in runs):
            self._correct(runs)
        self._taken.clear()
        self._settled = self._now
        if not self._sorted and not self._arrived:
            # Nobody waits for a turn, so nobody can get less than a share.
            self._tenants.clear()
            self._turns.clear()

    def _correct(self, runs: Sequence[LaneRun]) -> None:
        """Charge each tenant for what was taken from its lanes, instead of one record for each."""
        counts: dict[Lane, int] = {}
        for run in runs:
            counts[run.lane] = counts.get(run.lane, 0) + len(run.records)
        served = [taken.tenant for taken in self._taken if taken.lane in counts]
        for taken in self._taken:
            more = counts.pop(taken.lane, 0) - 1  # -1: the lane was parked, because the offset map has no room
            if more:
                self._charge(taken.tenant, more, taken.adds)
        # The turns of lanes that were parked did not take place.
        self._now = max([self._settled, *(tenant.turn - tenant.cost for tenant in served)])

    def _sort_in(self) -> None:
        """Queue the lanes that have arrived with their tenants."""
        if not self._arrived:
            return
        arrived, self._arrived = self._arrived, []
        fairness, tenants = self._fairness, self._tenants
        for lane in arrived:
            if not lane.waiting:
                self._emptied.append(lane)
                continue
            first = lane.waiting[0]
            name, priority = fairness.tenant_of(first), fairness.priority_of(first)
            tenant = tenants.get(name)
            if tenant is None:
                cost = 1.0 / fairness.weight_of(name)
                tenant = tenants[name] = _Tenant(name, cost, self._now + cost)
                self._queue(tenant)
            tenant.lanes.setdefault(priority, deque()).append((next(self._numbers), lane))
            self._sorted += 1

    def _charge(self, tenant: _Tenant, records: int, adds: int) -> None:
        """Let the tenant's next turn be later by what so many records cost."""
        tenant.turn += tenant.cost * records
        tenant.passed += adds * records
        if self._tenants.get(tenant.name) is tenant:
            self._queue(tenant)

    def _queue(self, tenant: _Tenant) -> None:
        tenant.entry = (tenant.turn, next(self._numbers), tenant)
        heappush(self._turns, tenant.entry)
