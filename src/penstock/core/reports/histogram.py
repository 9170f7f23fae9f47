"""How often something took how long: counts by bounds, which cost no more than a look-up for each observation."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """One thread observes; any other may read, and sees a moment of each count."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last is for what is above all bounds
        self.total = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        """So many took ``value`` each; a value at a bound counts as below it."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    def __add__(self, other: "Histogram") -> "Histogram":
        added = Histogram(self.bounds)
        added.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        added.total = self.total + other.total
        return added
