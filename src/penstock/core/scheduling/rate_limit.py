"""Which lanes wait for their rate, and until when."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf

from penstock.core.scheduling.lanes import AnyRecord, Lane
from penstock.core.scheduling.token_buckets import TokenBuckets


class RateLimit:
    """Keeps a rate for the whole handler, or, with ``tenant_of``, for each tenant. ``Schedule`` owns it.

    The lanes of a tenant wait in one queue, and one alarm is set for each queue. When a call may begin, the first lane
    of the queue becomes ready, with a claim to that call: lanes that became ready meanwhile cannot take it.

    A record that is queued for a busy worker has a claim too, and counts when the worker begins it. However long it is
    queued, its call does not come too soon.
    """

    def __init__(self, interval: float, burst: float, tenant_of: Callable[[AnyRecord], Hashable] | None = None) -> None:
        self.buckets = TokenBuckets(interval, burst)
        self._tenant_of = tenant_of
        self._queues: dict[Hashable, deque[Lane]] = {}
        self._claimed: dict[Lane, Hashable] = {}  # the bucket of each ready lane that has a claim
        self._alarms: list[tuple[float, int, Hashable]] = []
        self._alarm_at: dict[Hashable, float] = {}  # the alarm that counts, by bucket
        self._numbers = count()
        self._queued: deque[tuple[Hashable, AnyRecord]] = deque()  # each with its bucket
        self._waiting = 0
        self._behind_claims: set[Hashable] = set()  # buckets whose lanes wait for the end of a claim
        self._held_up = 0  # how many lanes these are
        self._last_record: AnyRecord = None
        self._last_tenant: Hashable = None

    @property
    def is_by_tenant(self) -> bool:
        return self._tenant_of is not None

    @property
    def waiting(self) -> int:
        """How many lanes wait for their rate. Those behind queued records do not count: they wait for a worker."""
        return self._waiting - self._held_up

    @property
    def queued(self) -> int:
        """How many records are queued for busy workers."""
        return len(self._queued)

    def change(self, interval: float, burst: float, now: float) -> None:
        """Keep another rate from now on, for the same tenants."""
        self.buckets.change(interval, burst, now)
        self._alarms.clear()
        self._alarm_at.clear()
        for bucket in self._queues:
            self._arm(bucket, now)

    # One rate for the whole handler.

    def due(self, now: float) -> float:
        """When the next call of the handler may begin, after those that are queued; inf if one of them must begin."""
        claims = len(self._queued)
        if claims and not self.buckets.can_hold(claims + 1):
            return inf
        return self.buckets.due(None, now, claims=claims)

    # A rate for each tenant.

    def admits(self, lane: Lane, now: float) -> bool:
        """Whether the first record of this ready lane may begin now. If not, the caller passes the lane to ``wait``."""
        has_claim = self.drop_claim(lane, now)
        bucket = self._bucket(lane.waiting[0], now)
        claims_before = 0 if has_claim else self.buckets.claims(bucket)
        return self.buckets.due(bucket, now, claims=claims_before) <= now

    def wait(self, lane: Lane, now: float) -> None:
        """Let this lane wait until its first record may begin."""
        bucket = self._bucket(lane.waiting[0], now)
        self._queues.setdefault(bucket, deque()).append(lane)
        self._waiting += 1
        if bucket in self._behind_claims:
            self._held_up += 1
        elif bucket not in self._alarm_at:
            self._arm(bucket, now)

    def begin(self, record: AnyRecord, now: float) -> None:
        """A free worker gets this record. It counts, even if the worker loses it again before it begins."""
        self._take(self._bucket(record, now), now)

    def queue(self, record: AnyRecord, now: float) -> None:
        """This record, which may begin now, is queued for the worker that is free first."""
        bucket = self._bucket(record, now)
        self._queued.append((bucket, record))
        self.buckets.claim(bucket)

    def begin_queued(self, now: float) -> None:
        """A worker has become free and has begun the record that was queued first."""
        bucket, _ = self._queued.popleft()
        self.buckets.end_claim(bucket)
        self._take(bucket, now)

    def take_queued(self) -> list[AnyRecord]:
        """Take the records that are queued, because another rate begins."""
        records = [record for _, record in self._queued]
        self._queued.clear()
        return records

    def _take(self, bucket: Hashable, now: float) -> None:
        self.buckets.take(bucket, now)
        if bucket in self._queues:
            self._arm(bucket, now)

    def drop_claim(self, lane: Lane, now: float) -> bool:
        """End the claim of a lane that is not ready any more. Returns whether it had one."""
        if lane not in self._claimed:
            return False
        bucket = self._claimed.pop(lane)
        self.buckets.end_claim(bucket)
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
        while queue and self.buckets.due(bucket, now, claims=self.buckets.claims(bucket)) <= now:
            lane = queue.popleft()
            self._waiting -= 1
            if lane.waiting:  # else its records are gone: the partition was revoked, or back-pressure dropped them
                self.buckets.claim(bucket)
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
        self._behind_claims.clear()
        self._waiting = self._held_up = 0

    def forget_ended(self) -> None:
        """Forget the lanes of epochs that have ended."""
        for bucket, queue in [*self._queues.items()]:
            # Not by ``waiting``: back-pressure drops records of lanes that live on, and fetches them again.
            kept = deque(lane for lane in queue if lane.epoch.dispatching)
            self._waiting -= len(queue) - len(kept)
            if bucket in self._behind_claims:
                self._held_up -= len(queue) - len(kept)
            if kept:
                self._queues[bucket] = kept
            else:
                del self._queues[bucket]
                self._alarm_at.pop(bucket, None)
                self._behind_claims.discard(bucket)

    def next_due(self) -> float | None:
        """When a lane may become ready."""
        alarms = self._alarms
        while alarms and self._alarm_at.get(alarms[0][2]) != alarms[0][0]:
            heappop(alarms)
        return alarms[0][0] if alarms else None

    def _arm(self, bucket: Hashable, now: float) -> None:
        claims, lanes = self.buckets.claims(bucket), len(self._queues[bucket])
        was_behind = bucket in self._behind_claims
        if claims and not self.buckets.can_hold(claims + 1):
            self._alarm_at.pop(bucket, None)  # set when a claim ends
            if not was_behind:
                self._behind_claims.add(bucket)
                self._held_up += lanes
            return
        if was_behind:
            self._behind_claims.remove(bucket)
            self._held_up -= lanes
        at = self._alarm_at[bucket] = self.buckets.due(bucket, now, claims=claims)
        heappush(self._alarms, (at, next(self._numbers), bucket))

    def _bucket(self, record: AnyRecord, now: float) -> Hashable:
        if self._tenant_of is None:
            return None
        if record is not self._last_record:  # the user's function may be slow, and a record is asked for several times
            self._last_record, self._last_tenant = record, self._tenant_of(record)
        return self.buckets.bucket(self._last_tenant, now)
