"""A histogram of durations: one counter for each bucket, so that an observation costs only one binary search."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Only one thread may call ``observe``. Any thread may read; it sees a recent value of each counter."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last one counts values above all bounds
        self.total = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        """Add ``count`` observations of ``value``; a value equal to a bound belongs to the bucket below it."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    def __add__(self, other: "Histogram") -> "Histogram":
        added = Histogram(self.bounds)
        added.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        added.total = self.total + other.total
        return added
