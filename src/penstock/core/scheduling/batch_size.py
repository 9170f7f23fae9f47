"""How many offsets the next batch on Spark takes, from how long the last ones took."""

from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

# One odd batch must not throw the size about.
_MOST_CHANGE = 4

# The workers start in the first batch, so that it tells little of the handler; unless it takes many times too long, or
# is so quick that many times as many would still fit. The first of all was small for no other reason than caution.
_COLD_GROWTH = 2
_COLD_PATIENCE = 5
_FIRST_CHANGE = 16

# How many of the last batches are looked at.
_WINDOW = 12

# Two batches tell what an offset costs if one is so many times as large as the other. Of batches of about the same size
# only chance says which takes longer.
_TELLING_RATIO = 1.25

# Where batches take so many times as long as they should, a smaller one is tried now and then.
_PATIENCE = 2

# Each offset costs at least this share of what it would if a batch cost nothing else.
_LEAST_SHARE = 0.05

# In seconds; shorter than any batch.
_INSTANT = 1e-9

# Spark deals a limit out to partitions in proportion and rounds, so a full batch may fall a little short.
_FULL_SHARE = 0.9

# What a batch costs in any case should be at most this share of it, be it ever so long.
_FIXED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class BatchSize:
    """At most ``size`` offsets, never above ``most``, so that a batch takes about ``seconds``.

    It starts small, as the first batch must not take minutes, whatever the handler does.

    ``warm`` says that a batch was finished since the workers started; ``seen`` are the offsets and seconds of the last
    batches since then; ``cost`` is what they have told of what a batch costs.
    """

    size: int
    most: int
    seconds: float
    warm: bool = False
    seen: tuple[tuple[int, float], ...] = ()
    cost: "Cost | None" = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", max(1, min(self.size, self.most)))

    def is_filled_by(self, offsets: int, parts: int = 1) -> bool:
        """Whether the limit, or one of so many equal parts of it, is what ended a batch. Only then there is more."""
        return offsets >= _FULL_SHARE * max(1, self.size // parts)

    def after(self, offsets: int, seconds: float, *, is_full: bool | None = None) -> "BatchSize":
        """A batch of so many offsets was finished in so many seconds."""
        is_full = self.is_filled_by(offsets) if is_full is None else is_full
        if not self.warm:
            patient = seconds <= self.seconds * _COLD_PATIENCE
            return replace(
                self, size=self.size * self._cold_growth(seconds) if is_full and patient else self.size, warm=True
            )
        seen = (*self.seen, (offsets, seconds))[-_WINDOW:]
        cost = self._cost(seen)
        least, most = self.size // _MOST_CHANGE, self.size * _MOST_CHANGE
        if not is_full:
            # A batch that the limit did not end says little about the limit: it stays above what batches have.
            largest = max(each for each, _ in seen)
            least, most = self.size if cost is None else max(least, min(largest, self.size)), self.size
        wanted = (cost or Cost.of_offsets_alone(seen)).fitting(self.seconds)
        return replace(self, size=max(least, min(most, wanted)), seen=seen, cost=cost)

    def _cost(self, seen: tuple[tuple[int, float], ...]) -> "Cost | None":
        """What batches of different sizes tell; if there are none, what was known before, at today's speed."""
        told = Cost.told_by(seen)
        if told is not None or self.cost is None:
            return told
        # What was known may be long ago. If batches take too long all the same, a smaller one will tell.
        is_old = len(seen) == _WINDOW
        too_long = median(took for _, took in seen) > _PATIENCE * self.seconds
        return None if is_old and too_long else self.cost.at_the_speed_of(seen)

    def _cold_growth(self, seconds: float) -> int:
        """How many times as many would fit, even if all of the time was the records'."""
        most = _MOST_CHANGE if self.seen else _FIRST_CHANGE
        return max(_COLD_GROWTH, int(min(most, self.seconds / seconds))) if seconds else most

    def after_failure(self) -> "BatchSize":
        """Half as much is risked, and repeated, the next time; the workers start anew."""
        return replace(self, size=self.size // 2, warm=False)


@dataclass(frozen=True, slots=True)
class Cost:
    """The seconds of a batch: some in any case, and some for each offset."""

    fixed: float
    each: float

    @classmethod
    def of_offsets_alone(cls, seen: tuple[tuple[int, float], ...]) -> "Cost":
        return cls(0.0, median(took / max(1, offsets) for offsets, took in seen))

    @classmethod
    def told_by(cls, seen: tuple[tuple[int, float], ...]) -> "Cost | None":
        """By the median of what each two batches of different sizes tell, so that single odd ones do not count."""
        slopes = [
            (late[1] - early[1]) / (late[0] - early[0])
            for early, late in combinations(seen, 2)
            if max(early[0], late[0]) > _TELLING_RATIO * max(1, min(early[0], late[0]))
        ]
        if not slopes:
            return None
        each = max(median(slopes), _LEAST_SHARE * cls.of_offsets_alone(seen).each)
        return cls(max(0.0, median(took - each * offsets for offsets, took in seen)), each)

    def at_the_speed_of(self, seen: tuple[tuple[int, float], ...]) -> "Cost":
        """The same in proportion, where batches take longer than they did, or less long."""
        speed = median(took / max(_INSTANT, self.fixed + self.each * offsets) for offsets, took in seen)
        return Cost(self.fixed * speed, self.each * speed)

    def fitting(self, seconds: float) -> int:
        """How many offsets take so many seconds.

        A batch that costs much in any case is given longer than that: smaller ones would only do less in that time.
        """
        wanted = max(seconds, self.fixed / _FIXED_SHARE) - self.fixed
        # Where offsets cost nothing, there is no limit but the others.
        return int(min(wanted / self.each, 2**62)) if self.each else 2**62
