"""Samples of a partition's end offset over time: they show when a record was written, without reading the record."""

from bisect import bisect_right
from collections import deque

# With one sample every ten seconds, this covers an hour.
_MAX_SAMPLES = 360


class EndHistory:
    """The samples (time, end offset) of one partition, oldest first."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_MAX_SAMPLES)

    def note(self, at: float, end: int) -> None:
        """Add a sample: at time ``at`` the end offset was ``end``, which is the offset of the next record."""
        if self._samples and end < self._samples[-1][1]:
            self._samples.clear()  # The topic was recreated: the old samples belong to the old log.
        self._samples.append((at, end))

    def written_at(self, offset: int) -> float | None:
        """About when the record at this offset was written.

        None if the record is older than the first sample, or newer than the last one. Between two samples, the time is
        interpolated linearly.
        """
        index = bisect_right(self._samples, offset, key=lambda sample: sample[1])
        if not 0 < index < len(self._samples):
            return None
        (before, low), (after, high) = self._samples[index - 1], self._samples[index]
        return before + (after - before) * (offset - low) / (high - low)
