"""How many offsets the next batch on Spark takes, from how long the last ones took."""

from dataclasses import dataclass, replace

# One odd batch must not throw the size about.
_MOST_CHANGE = 4

# The workers start in the first batch, so that it tells little of the handler; unless it takes many times too long, or
# is so quick that many times as many would still fit. The first of all was small for no other reason than caution.
_COLD_GROWTH = 2
_COLD_PATIENCE = 5
_FIRST_CHANGE = 16

# How many of the last batches are looked at.
_WINDOW = 8

# Spark deals a limit out to partitions in proportion and rounds, so a full batch may fall a little short.
_FULL_SHARE = 0.9

# What a batch costs in any case should be at most this share of it, be it ever so long.
_FIXED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class BatchSize:
    """At most ``size`` offsets, never above ``most``, so that a batch takes about ``seconds``.

    It starts small, as the first batch must not take minutes, whatever the handler does.

    ``warm`` says that a batch was finished since the workers started; ``seen`` are the offsets and seconds of the last
    batches since then.
    """

    size: int
    most: int
    seconds: float
    warm: bool = False
    seen: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", max(1, min(self.size, self.most)))

    def after(self, offsets: int, seconds: float) -> "BatchSize":
        """A batch of so many offsets was finished in so many seconds."""
        # Only a batch that was full tells that there is more to take.
        is_full = offsets >= _FULL_SHARE * self.size
        if not self.warm:
            patient = seconds <= self.seconds * _COLD_PATIENCE
            return replace(
                self, size=self.size * self._cold_growth(seconds) if is_full and patient else self.size, warm=True
            )
        seen = (*self.seen, (offsets, seconds))[-_WINDOW:]
        least, most = self.size // _MOST_CHANGE, self.size * _MOST_CHANGE if is_full else self.size
        return replace(self, size=max(least, min(most, _fitting(seen, self.seconds))), seen=seen)

    def _cold_growth(self, seconds: float) -> int:
        """How many times as many would fit, even if all of the time was the records'."""
        most = _MOST_CHANGE if self.seen else _FIRST_CHANGE
        return max(_COLD_GROWTH, min(most, int(self.seconds / seconds))) if seconds else most

    def after_failure(self) -> "BatchSize":
        """Half as much is risked, and repeated, the next time; the workers start anew."""
        return replace(self, size=self.size // 2, warm=False)


def _fitting(seen: tuple[tuple[int, float], ...], seconds: float) -> int:
    """How many offsets take so many seconds, if a batch costs something in any case and something for each offset.

    The two are told apart by batches of different sizes, by least squares. Without them a machine that takes long over
    any batch would be given ever smaller ones, which take as long.
    """
    offsets_mean = sum(offsets for offsets, _ in seen) / len(seen)
    seconds_mean = sum(took for _, took in seen) / len(seen)
    spread = sum((offsets - offsets_mean) ** 2 for offsets, _ in seen)
    together = sum((offsets - offsets_mean) * (took - seconds_mean) for offsets, took in seen)
    each = max(0.0, together / spread) if spread else seconds_mean / max(1.0, offsets_mean)
    fixed = max(0.0, seconds_mean - each * offsets_mean)
    wanted = max(seconds, fixed / _FIXED_SHARE) - fixed
    # Where more takes no longer, there is no limit but the others.
    return int(min(wanted / each, 2**62)) if each else 2**62
