"""Counts the errors of a run by the place where they were raised."""

from dataclasses import dataclass, field
from itertools import pairwise

# So many different errors are shown with their traceback, once each. A handler has few places that raise; generated
# code may have many.
_MOST_SHOWN = 20
_SHOWN_AT_THE_END = 10
_FRAME = '  File "'


@dataclass
class ErrorCounts:
    """Shows each error in full once, and counts all of them for the summary at the end."""

    _counts: dict[tuple[str, ...], int] = field(default_factory=dict)
    _names: dict[tuple[str, ...], str] = field(default_factory=dict)
    others: int = 0

    def is_new(self, traceback: str) -> bool:
        """Count one error. Return whether it is the first of its kind, to be shown in full."""
        # Compare types and frames, without the messages: those differ from record to record.
        lines = traceback.splitlines()
        frames = [line for line in lines if line.startswith(_FRAME)]
        after = [line for before, line in pairwise(lines) if before.startswith(" ") and not line.startswith(" ")]
        kinds = [line.partition(":")[0] for line in after]
        known = (*kinds, *frames)
        if known in self._counts:
            self._counts[known] += 1
            return False
        if len(self._counts) >= _MOST_SHOWN:
            self.others += 1
            return False
        self._counts[known] = 1
        self._names[known] = ", ".join(each.strip() for each in (*kinds[-1:], *frames[-1:]))
        return True

    def summary(self) -> list[str]:
        """Return a line for each error that occurred more than once, the most frequent first."""
        often = sorted((count, known) for known, count in self._counts.items() if count > 1)[::-1]
        lines = [f"{count:,} times {self._names[known]}" for count, known in often[:_SHOWN_AT_THE_END]]
        rest = self.others + sum(count for count, _ in often[_SHOWN_AT_THE_END:])
        return [*lines, f"{rest:,} times other errors"] if rest else lines
