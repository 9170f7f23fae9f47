"""Applies a rate to the lanes of a schedule. Without a rate it does nothing."""

from collections import deque
from collections.abc import Callable, Sequence
from math import inf

from penstock.core.scheduling.lanes import AnyRecord, Lane, LaneRun, name_alone
from penstock.core.scheduling.rate_limit import RateLimit


class RateWaits:
    """Part of ``Schedule``: lanes leave ``ready`` to wait for their tenant's rate, and ``make_ready`` puts them back.

    With a rate, records go to workers one by one, so that each call is counted when it begins. A batch is one call.
    Bundles may be queued for busy workers: the worker that is free first begins the one that was queued first, and then
    it counts. The methods get how many bundles are out (``busy``) and how many may run at once (``workers``).
    """

    def __init__(
        self,
        count_ready: Callable[[], int],
        make_ready: Callable[[Lane], None],
        offset_of: Callable[[AnyRecord], int],
    ) -> None:
        self._count_ready = count_ready
        self._make_ready = make_ready
        self._offset_of = offset_of
        self._limit: RateLimit | None = None
        self._now = 0.0
        self._shut_until = 0.0
        self._most_waiting = 0
        self._has_free_worker = True
        self.by_tenant: RateWaits | None = None
        """This object, if each tenant has a rate of its own."""
        self.is_on = False
        """Whether there is a rate."""
        self.is_shut = False
        """Whether the rate of the whole handler lets no call begin in this turn."""

    def set(self, limit: RateLimit | None) -> None:
        """Keep this rate from now on; None ends it."""
        before, self._limit = self._limit, limit
        self.by_tenant = self if limit is not None and limit.is_by_tenant else None
        self.is_on, self.is_shut = limit is not None, False
        if before is not None and before is not limit:
            for lane in before.release():
                self._put_back(lane)
            for record in before.take_queued():
                if limit is not None:
                    limit.queue(record, self._now)

    @property
    def waiting(self) -> int:
        """How many lanes could begin a record if their rate let them."""
        waiting = 0 if self._limit is None else self._limit.waiting
        return waiting + (self._count_ready() if self.is_shut and self._has_free_worker else 0)

    def take_most_waiting(self) -> int:
        """The most that have waited at once since the last call."""
        most, self._most_waiting = max(self._most_waiting, self.waiting), 0
        return most

    def begin_turn(self, now: float, busy: int, workers: int) -> int:
        """Put back the lanes that may begin now. Returns how many records a bundle may have."""
        self._now = now
        limit = self._limit
        if limit is not None:
            # They have begun since the last turn. To count them a little late is safe: until then they have a claim.
            while limit.queued and busy - limit.queued < workers:
                limit.begin_queued(now)
            self._has_free_worker = busy < workers
            for lane in limit.wake(now):
                self._put_back(lane)
        self._look_whether_shut()
        return 1

    def may_begin(self, lane: Lane) -> bool:
        """Whether the first record of this ready lane may begin now. If not, it waits, with those behind it."""
        limit = self._limit
        if limit is None:
            return bool(lane.waiting)
        if not lane.waiting:
            limit.drop_claim(lane, self._now)
            return False
        if limit.admits(lane, self._now):
            return True
        if not lane.ordered:
            alone = self._first_alone(lane)
            self._make_ready(lane)
            lane = alone
        lane.held = True
        limit.wait(lane, self._now)
        self._most_waiting = max(self._most_waiting, limit.waiting)
        return False

    def handed_out(self, bundle: Sequence[LaneRun], busy: int, workers: int) -> None:
        """A worker gets this bundle, which is one call, at once or when it is free; ``busy`` includes it."""
        limit = self._limit
        if limit is not None:
            first = bundle[0].records[0]
            if busy - limit.queued > workers:
                limit.queue(first, self._now)
            else:
                limit.begin(first, self._now)
            self._has_free_worker = busy < workers
        self._look_whether_shut()

    def forget_ended(self) -> None:
        """Forget the lanes of epochs that have ended."""
        if self._limit is not None:
            self._limit.forget_ended()

    def next_due(self) -> list[float]:
        """When a lane that waits may begin, if one waits."""
        if self.is_shut:
            return [self._shut_until] if self._shut_until < inf else []
        at = None if self._limit is None else self._limit.next_due()
        return [] if at is None else [at]

    def not_before(self, at: float) -> list[float]:
        """This time, or, if the rate of the whole handler lets no call begin before another one, that one."""
        return [max(at, each) for each in self.next_due()] if self.is_shut else [at]

    def _look_whether_shut(self) -> None:
        if self._limit is None or self._limit.is_by_tenant:
            return
        self._shut_until = self._limit.due(self._now)
        self.is_shut = self._shut_until > self._now
        if self.is_shut and self._has_free_worker:
            self._most_waiting = max(self._most_waiting, self._count_ready())

    def _first_alone(self, lane: Lane) -> Lane:
        """Move the first record of a lane without order to a lane of its own."""
        record = lane.waiting.popleft()
        alone = Lane(lane.epoch, name_alone(self._offset_of(record)), waiting=deque([record]))
        lane.epoch.lanes.by_key[alone.key] = alone
        return alone

    def _put_back(self, lane: Lane) -> None:
        lane.held = False
        self._make_ready(lane)
