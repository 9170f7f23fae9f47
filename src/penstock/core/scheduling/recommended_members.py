"""How many members a group should have: from what arrives, how long a record takes, and what a rebalance costs.

A member that is busy more than ``HIGH`` of its time needs help, because waiting grows without bound near 1. The number
is then the smallest with which members are busy at most ``TARGET``. Between the two nothing changes, so noise changes
nothing. Members are added at once, and taken away only when fewer have been enough for ``CALM_SECONDS``. Each change is
a rebalance, which stops work: so the time between two changes is at least ``PAUSES_APART`` rebalances.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil

TARGET = 0.7
HIGH = 0.85
CALM_SECONDS = 300.0
LEAST_SECONDS = 60.0
"""The shortest time between two changes."""
PAUSES_APART = 20
"""At most a twentieth of the time may pass in rebalances."""
DRAIN_SECONDS = 300.0
"""How quickly a backlog should be gone."""
NORMAL_SECONDS = 10.0
"""A lag of so many seconds of arrivals is no backlog: it is fetched, in progress, or not committed yet."""


@dataclass(frozen=True)
class GroupLoad:
    """What was measured of a group. ``service_seconds`` is how long a handler takes for one record.

    ``concurrency`` is how many records a member handles at once; with ``order="partition"`` a partition has only one.
    """

    rate_in: float
    lag: int
    service_seconds: float
    concurrency: int
    partitions: int
    members: int
    one_per_partition: bool = False
    rebalance_seconds: float = 0.0

    @property
    def busy_workers(self) -> float:
        """How many workers the arrivals need, and the backlog, if it is to be gone in ``DRAIN_SECONDS``."""
        backlog = max(0.0, self.lag - self.rate_in * NORMAL_SECONDS)
        return (self.rate_in + backlog / DRAIN_SECONDS) * self.service_seconds

    @property
    def busy_share(self) -> float | None:
        """How much of the members' time the work needs, more than 1 if they cannot do it; None without members."""
        return self.busy_workers / (self.members * max(1, self.concurrency)) if self.members else None

    @property
    def most(self) -> int:
        """More members would have no partition, or no worker of theirs could get a record."""
        per_member = max(1, self.concurrency)
        return max(1, ceil(self.partitions / per_member) if self.one_per_partition else self.partitions)


def needed(load: GroupLoad) -> int:
    """The smallest number of members that are busy at most ``TARGET`` of their time, as far as partitions allow it."""
    return _bounded(load, needed_without_limit(load))


def needed_without_limit(load: GroupLoad) -> int:
    """The same, if there were partitions for any number of members."""
    # Rounded, because 7 / 0.7 is a little more than 10.
    return ceil(round(load.busy_workers / max(1, load.concurrency) / TARGET, 6))


def is_too_few(load: GroupLoad, members: int) -> bool:
    """Whether so many members would be busier than ``HIGH``, and more would help."""
    return load.busy_workers > HIGH * members * max(1, load.concurrency) and needed(load) > members


def needed_now(load: GroupLoad) -> int:
    """What one measurement recommends. It knows nothing of the minutes before, so it may recommend fewer at once."""
    wanted = needed(load)
    return wanted if wanted < load.members or is_too_few(load, load.members) else _bounded(load, load.members)


def _bounded(load: GroupLoad, members: int) -> int:
    return max(1, min(load.most, members))


class RecommendedMembers:
    """The recommendation for one group, over time."""

    def __init__(self) -> None:
        self.members: int | None = None
        """None until something was measured."""
        self._changed_at = 0.0
        self._recent: deque[tuple[float, int]] = deque()  # what was needed in the last ``CALM_SECONDS``
        self._calm_from = 0.0  # the first measurement, or the last change

    def observe(self, load: GroupLoad, now: float) -> int:
        """Take a measurement, and return the recommendation."""
        if self.members is None:
            self.members, self._calm_from = _bounded(load, load.members), now
            self._changed_at = now - LEAST_SECONDS  # nothing has changed yet, so the first change need not wait
        members = self.members
        self._recent.append((now, needed(load)))
        while self._recent[0][0] <= now - CALM_SECONDS:
            self._recent.popleft()
        self.members = _bounded(load, self._next(load, members, now))
        if self.members != members:
            self._changed_at = self._calm_from = now
        return self.members

    def _next(self, load: GroupLoad, members: int, now: float) -> int:
        if now - self._changed_at < max(LEAST_SECONDS, PAUSES_APART * load.rebalance_seconds):
            return members
        if is_too_few(load, members):
            return needed(load)
        is_calm = now - self._calm_from >= CALM_SECONDS
        return min(members, max(each for _, each in self._recent)) if is_calm else members
