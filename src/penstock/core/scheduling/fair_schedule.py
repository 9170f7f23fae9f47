"""The schedule with ``fair_by=`` or ``priority=``: workers get the lanes in the order of fair turns."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from penstock.core.scheduling.fair_queue import Fairness, FairQueue
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Lane, LaneRun
from penstock.core.scheduling.schedule import Schedule


class UnorderedLane(NamedTuple):
    """The name of the lane of a tenant's records of one priority that have no order."""

    tenant: Hashable
    priority: int


class FairSchedule(Schedule):
    """Each key is a lane, also of a very quick handler; records without order have a lane by tenant and priority."""

    def __init__(self, fairness: Fairness, **options: Any) -> None:
        super().__init__(**options)
        self._fairness = fairness
        self._queue = self._ready = FairQueue(fairness)

    def deliver(self, epoch: Epoch, records: Sequence[AnyRecord]) -> None:
        by_key, keyless_in_order = self._order == "key", self._keyless is None
        tenant_of, priority_of = self._fairness.tenant_of, self._fairness.priority_of
        for record in records:
            key: Hashable = self._key_of(record) if by_key else None
            if not by_key or (key is None and not keyless_in_order):
                key = UnorderedLane(tenant_of(record), priority_of(record))
            self._lane(epoch, key).waiting.append(record)

    def _lane(self, epoch: Epoch, key: Hashable) -> Lane:
        lane = epoch.lanes.by_key.get(key)
        if lane is None:
            lane = epoch.lanes.by_key[key] = Lane(epoch, key, ordered=not isinstance(key, UnorderedLane))
            self._ready.append(lane)
        return lane

    def mix_or_split(self, epochs: Iterable[Epoch], size: int) -> None:
        """A mixed lane has many tenants, so it could not take turns."""

    def _bundle(self, size: int) -> list[LaneRun]:
        bundle = super()._bundle(size)
        self._queue.settle(bundle)
        return bundle
