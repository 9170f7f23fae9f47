"""How many offsets the next batch on Spark takes, from the duration of the last batches."""

from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

# The size changes at most by this factor from batch to batch, so that one odd batch has little effect.
_MAX_CHANGE = 4

# Python workers start during the first batch, so its duration says little about the handler. After it the size only
# grows: by at least _COLD_GROWTH, if the batch took at most _COLD_PATIENCE times as long as wanted. After the very
# first batch of all, whose size is a cautious guess, it may grow by _FIRST_CHANGE.
_COLD_GROWTH = 2
_COLD_PATIENCE = 5
_FIRST_CHANGE = 16

# How many of the last batches are considered.
_WINDOW = 12

# Two batches show what one offset costs only if one is larger than the other by this factor. Between batches of about
# the same size, the difference in duration is noise.
_MIN_SIZE_RATIO = 1.25

# If batches take more than this factor longer than wanted, a smaller batch is tried now and then.
_PATIENCE = 2

# The cost of one offset is at least this share of what it would be if a batch had no fixed cost.
_LEAST_SHARE = 0.05

# In seconds; shorter than any batch.
_INSTANT = 1e-9

# Spark divides a limit among partitions in proportion and rounds, so a full batch may be a little smaller.
_FULL_SHARE = 0.9

# The fixed cost should be at most this share of a batch, even if the batch then takes longer than wanted.
_FIXED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class BatchSize:
    """A batch has at most ``size`` offsets, never more than ``most``, so that it takes about ``seconds``.

    The size starts small, because the first batch must not take minutes, whatever the handler does.

    ``warm`` says that a batch was finished since the workers started; ``seen`` has the offsets and seconds of the last
    batches since then; ``cost`` is the cost of a batch that they show.
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
        """Whether the limit ended this batch, so that more offsets are waiting.

        With ``parts``, the limit is divided into so many equal parts, and the batch is one of them.
        """
        return offsets >= _FULL_SHARE * max(1, self.size // parts)

    def after(self, offsets: int, seconds: float, *, is_full: bool | None = None) -> "BatchSize":
        """The next size, after a batch of so many offsets was finished in so many seconds."""
        is_full = self.is_filled_by(offsets) if is_full is None else is_full
        if not self.warm:
            patient = seconds <= self.seconds * _COLD_PATIENCE
            return replace(
                self, size=self.size * self._cold_growth(seconds) if is_full and patient else self.size, warm=True
            )
        seen = (*self.seen, (offsets, seconds))[-_WINDOW:]
        cost = self._cost(seen)
        least, most = self.size // _MAX_CHANGE, self.size * _MAX_CHANGE
        if not is_full:
            # The limit did not end this batch, so the batch says little about the limit: never go below its size.
            largest = max(each for each, _ in seen)
            least, most = self.size if cost is None else max(least, min(largest, self.size)), self.size
        wanted = (cost or Cost.of_offsets_alone(seen)).fitting(self.seconds)
        return replace(self, size=max(least, min(most, wanted)), seen=seen, cost=cost)

    def _cost(self, seen: tuple[tuple[int, float], ...]) -> "Cost | None":
        """The cost that batches of different sizes show; without such batches the known cost, at today's speed."""
        shown = Cost.shown_by(seen)
        if shown is not None or self.cost is None:
            return shown
        # The known cost may be outdated. If batches take too long in spite of it, forget it and try a smaller one.
        is_old = len(seen) == _WINDOW
        too_long = median(took for _, took in seen) > _PATIENCE * self.seconds
        return None if is_old and too_long else self.cost.at_the_speed_of(seen)

    def _cold_growth(self, seconds: float) -> int:
        """By which factor the batch could grow, assuming that its duration was the handler's alone."""
        most = _MAX_CHANGE if self.seen else _FIRST_CHANGE
        return max(_COLD_GROWTH, int(min(most, self.seconds / seconds))) if seconds else most

    def after_failure(self) -> "BatchSize":
        """Half the size: less work to repeat if it fails again. The workers start again, so they are cold."""
        return replace(self, size=self.size // 2, warm=False)


@dataclass(frozen=True, slots=True)
class Cost:
    """The seconds that a batch takes: a fixed part, and a part for each offset."""

    fixed: float
    each: float

    @classmethod
    def of_offsets_alone(cls, seen: tuple[tuple[int, float], ...]) -> "Cost":
        return cls(0.0, median(took / max(1, offsets) for offsets, took in seen))

    @classmethod
    def shown_by(cls, seen: tuple[tuple[int, float], ...]) -> "Cost | None":
        """The median slope of all pairs of batches that differ in size; a median, so that outliers do not count."""
        slopes = [
            (late[1] - early[1]) / (late[0] - early[0])
            for early, late in combinations(seen, 2)
            if max(early[0], late[0]) > _MIN_SIZE_RATIO * max(1, min(early[0], late[0]))
        ]
        if not slopes:
            return None
        each = max(median(slopes), _LEAST_SHARE * cls.of_offsets_alone(seen).each)
        return cls(max(0.0, median(took - each * offsets for offsets, took in seen)), each)

    def at_the_speed_of(self, seen: tuple[tuple[int, float], ...]) -> "Cost":
        """The same cost, scaled by how much slower or faster these batches were."""
        speed = median(took / max(_INSTANT, self.fixed + self.each * offsets) for offsets, took in seen)
        return Cost(self.fixed * speed, self.each * speed)

    def fitting(self, seconds: float) -> int:
        """How many offsets fit into so many seconds.

        A batch with a high fixed cost may take longer: smaller batches would do less work in the same time.
        """
        wanted = max(seconds, self.fixed / _FIXED_SHARE) - self.fixed
        # If offsets cost nothing, this sets no limit.
        return int(min(wanted / self.each, 2**62)) if self.each else 2**62
