"""When a log had which end, as far as it was seen; so when a record of it was written, without reading it."""

from bisect import bisect_right
from collections import deque

# With a look every ten seconds, this reaches an hour back.
_MOST_LOOKS = 360


class EndHistory:
    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque(maxlen=_MOST_LOOKS)

    def note(self, at: float, end: int) -> None:
        """The log ended there at this time; the next record will get that offset."""
        if self._looks and end < self._looks[-1][1]:
            self._looks.clear()  # it was made anew, and its offsets say nothing about the old ones
        self._looks.append((at, end))

    def written_at(self, offset: int) -> float | None:
        """About when the record at this offset was written; None if it was there before the first look, or is not yet.

        Between two looks, records are taken to have come evenly.
        """
        index = bisect_right(self._looks, offset, key=lambda look: look[1])
        if not 0 < index < len(self._looks):
            return None
        (before, had), (after, has) = self._looks[index - 1], self._looks[index]
        return before + (after - before) * (offset - had) / (has - had)
