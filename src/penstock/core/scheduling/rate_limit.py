"""Which lanes wait for their rate, and until when."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from itertools import count

from penstock.core.scheduling.lanes import AnyRecord, Lane
from penstock.core.scheduling.token_buckets import TokenBuckets


class RateLimit:
    """Keeps a rate for the whole handler, or, with ``tenant_of``, for each tenant. ``Schedule`` owns it.

    The lanes of a tenant wait in one queue, and one alarm is set for each queue. When a call may begin, the first lane
    of the queue becomes ready, with a claim to that call: lanes that became ready meanwhile cannot take it.
    """

    def __init__(self, interval: float, burst: float, tenant_of: Callable[[AnyRecord], Hashable] | None = None) -> None:
        self.buckets = TokenBuckets(interval, burst)
        self._tenant_of = tenant_of
        self._queues: dict[Hashable, deque[Lane]] = {}
        self._claims: dict[Hashable, int] = {}  # how many ready lanes have a claim, by bucket
        self._claimed: dict[Lane, Hashable] = {}  # the bucket of each such lane
        self._alarms: list[tuple[float, int, Hashable]] = []
        self._alarm_at: dict[Hashable, float] = {}  # the alarm that counts, by bucket
        self._numbers = count()
        self._waiting = 0
        self._last_record: AnyRecord = None
        self._last_tenant: Hashable = None

    @property
    def is_by_tenant(self) -> bool:
        return self._tenant_of is not None

    @property
    def waiting(self) -> int:
        """How many lanes wait."""
        return self._waiting

    def change(self, interval: float, burst: float, now: float) -> None:
        """Keep another rate from now on, for the same tenants."""
        self.buckets.change(interval, burst, now)
        self._alarms.clear()
        self._alarm_at.clear()
        for bucket in self._queues:
            self._arm(bucket, now)

    # One rate for the whole handler.

    def due(self, now: float) -> float:
        """When the next call of the handler may begin."""
        return self.buckets.due(None, now)

    # A rate for each tenant.

    def admits(self, lane: Lane, now: float) -> bool:
        """Whether the first record of this ready lane may begin now. If not, the caller passes the lane to ``wait``."""
        has_claim = self.drop_claim(lane, now)
        bucket = self._bucket(lane.waiting[0], now)
        claims_before = 0 if has_claim else self._claims.get(bucket, 0)
        return self.buckets.due(bucket, now, claims=claims_before) <= now

    def wait(self, lane: Lane, now: float) -> None:
        """Let this lane wait until its first record may begin."""
        bucket = self._bucket(lane.waiting[0], now)
        self._queues.setdefault(bucket, deque()).append(lane)
        self._waiting += 1
        if bucket not in self._alarm_at:
            self._arm(bucket, now)

    def begin(self, record: AnyRecord, now: float) -> None:
        """A worker gets this record. It counts, even if the worker loses it again before it begins."""
        self.buckets.take(self._bucket(record, now), now)

    def drop_claim(self, lane: Lane, now: float) -> bool:
        """End the claim of a lane that is not ready any more. Returns whether it had one."""
        if lane not in self._claimed:
            return False
        bucket = self._claimed.pop(lane)
        left = self._claims.pop(bucket) - 1
        if left:
            self._claims[bucket] = left
        if bucket in self._queues and bucket not in self._alarm_at:
            self._arm(bucket, now)
        return True

    def wake(self, now: float) -> Iterator[Lane]:
        """Take the lanes that are ready now."""
        alarms = self._alarms
        while alarms and alarms[0][0] <= now:
            at, _, bucket = heappop(alarms)
            if self._alarm_at.get(bucket) == at:
                del self._alarm_at[bucket]
                yield from self._wake(bucket, now)

    def _wake(self, bucket: Hashable, now: float) -> Iterator[Lane]:
        queue = self._queues[bucket]
        while queue and self.buckets.due(bucket, now, claims=self._claims.get(bucket, 0)) <= now:
            lane = queue.popleft()
            self._waiting -= 1
            if lane.waiting:  # else its records are gone: the partition was revoked, or back-pressure dropped them
                self._claims[bucket] = self._claims.get(bucket, 0) + 1
                self._claimed[lane] = bucket
            yield lane
        if queue:
            self._arm(bucket, now)
        else:
            del self._queues[bucket]

    def release(self) -> Iterator[Lane]:
        """Take all lanes that wait, because the rate ends."""
        for queue in self._queues.values():
            yield from queue
        self._queues.clear()
        self._alarms.clear()
        self._alarm_at.clear()
        self._waiting = 0

    def forget_ended(self) -> None:
        """Forget the lanes of epochs that have ended."""
        for bucket, queue in [*self._queues.items()]:
            # Not by ``waiting``: back-pressure drops records of lanes that live on, and fetches them again.
            kept = deque(lane for lane in queue if lane.epoch.dispatching)
            self._waiting -= len(queue) - len(kept)
            if kept:
                self._queues[bucket] = kept
            else:
                del self._queues[bucket]
                self._alarm_at.pop(bucket, None)

    def next_due(self) -> float | None:
        """When a lane may become ready."""
        alarms = self._alarms
        while alarms and self._alarm_at.get(alarms[0][2]) != alarms[0][0]:
            heappop(alarms)
        return alarms[0][0] if alarms else None

    def _arm(self, bucket: Hashable, now: float) -> None:
        claims = self._claims.get(bucket, 0)
        if claims and not self.buckets.can_hold(claims + 1):
            self._alarm_at.pop(bucket, None)  # set when a claim ends
            return
        at = self._alarm_at[bucket] = self.buckets.due(bucket, now, claims=claims)
        heappush(self._alarms, (at, next(self._numbers), bucket))

    def _bucket(self, record: AnyRecord, now: float) -> Hashable:
        if self._tenant_of is None:
            return None
        if record is not self._last_record:  # the user's function may be slow, and a record is asked for several times
            self._last_record, self._last_tenant = record, self._tenant_of(record)
        return self.buckets.bucket(self._last_tenant, now)
