"""A token bucket for each tenant, in bounded memory."""

from collections.abc import Hashable
from dataclasses import dataclass

MOST_TENANTS = 1_000_000
"""So many tenants have a bucket of their own, while it is not full."""
# Further tenants share so many buckets.
_SHARED_BUCKETS = 65_536
# Full buckets are removed when there are twice as many buckets as after the last time.
_FIRST_SWEEP = 1_024
# If there are too many tenants, full buckets are removed at most so often.
_SWEEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Shared:
    """The name of a bucket that tenants share."""

    number: int


class TokenBuckets:
    """Each tenant may begin ``burst`` calls at once, and a further one every ``interval`` seconds.

    A bucket is one number: when it will be full again. A full bucket needs no memory, so it is removed. If ``most``
    tenants have a bucket that is not full, those that come then share buckets, by hash: none exceeds its rate, but
    those that share a bucket divide the rate.

    A claim is to a call that may begin now but begins later. No call is allowed that would leave too little for the
    claims. Claims need not be counted again when time passes: while nobody calls, a bucket only fills.
    """

    def __init__(self, interval: float, burst: float, *, most: int = MOST_TENANTS) -> None:
        self._full_at: dict[Hashable, float] = {}
        self._claims: dict[Hashable, int] = {}
        self._shared: set[Hashable] = set()  # the names of buckets that tenants share
        self._most = most
        self._sweep_size = min(_FIRST_SWEEP, most)
        self._sweep_again = float("-inf")
        self._set(interval, burst)

    def _set(self, interval: float, burst: float) -> None:
        self._interval = interval
        self._tolerance = (max(1.0, burst) - 1.0) * interval

    def __len__(self) -> int:
        return len(self._full_at)

    def change(self, interval: float, burst: float, now: float) -> None:
        """Keep another rate from now on. What calls have taken from a bucket stays taken."""
        factor = interval / self._interval
        self._full_at = {name: now + (at - now) * factor for name, at in self._full_at.items() if at > now}
        self._set(interval, burst)

    def bucket(self, tenant: Hashable, now: float) -> Hashable:
        """The name of the bucket that this tenant uses now."""
        if tenant in self._full_at or tenant in self._claims:
            return tenant
        if len(self._full_at) < self._most and not self._shared:
            return tenant
        shared = _Shared(hash(tenant) % _SHARED_BUCKETS)
        # Until a shared bucket is full, its tenants keep to it: they must not begin again with a full one of their own.
        is_full = self._full_at.get(shared, now) <= now and shared not in self._claims
        if not is_full or len(self._full_at) >= self._most:
            return shared
        return tenant

    def due(self, bucket: Hashable, now: float, *, claims: int = 0) -> float:
        """When the next call may begin, if so many calls begin before it; at ``now`` or earlier, it may begin now."""
        full_at = max(now, self._full_at.get(bucket, now))
        return full_at + claims * self._interval - self._tolerance

    def can_hold(self, calls: int) -> bool:
        """Whether a full bucket lets so many calls begin at once."""
        return (calls - 1) * self._interval <= self._tolerance

    def claims(self, bucket: Hashable) -> int:
        """How many claims there are to calls of this bucket."""
        return self._claims.get(bucket, 0)

    def claim(self, bucket: Hashable) -> None:
        """Keep a call for later that ``due`` allows now."""
        self._claims[bucket] = self._claims.get(bucket, 0) + 1
        if isinstance(bucket, _Shared):
            self._shared.add(bucket)

    def end_claim(self, bucket: Hashable) -> None:
        """The call begins, and the caller calls ``take``; or it does not begin."""
        left = self._claims.pop(bucket) - 1
        if left:
            self._claims[bucket] = left

    def take(self, bucket: Hashable, now: float) -> None:
        """A call begins."""
        full_at = self._full_at.get(bucket)
        if full_at is None:
            if len(self._full_at) >= self._sweep_size:
                self._sweep(now)
            if isinstance(bucket, _Shared):
                self._shared.add(bucket)
            full_at = now
        self._full_at[bucket] = max(now, full_at) + self._interval

    def _sweep(self, now: float) -> None:
        if len(self._full_at) >= self._most and now < self._sweep_again:
            return
        self._sweep_again = now + _SWEEP_SECONDS
        self._full_at = {name: at for name, at in self._full_at.items() if at > now}
        self._shared = {name for name in self._shared if name in self._full_at or name in self._claims}
        self._sweep_size = min(self._most, max(_FIRST_SWEEP, 2 * len(self._full_at)))
