"""The errors of a run, told apart by where they were raised."""

from dataclasses import dataclass, field
from itertools import pairwise

# Each of these is shown with its traceback once. A handler has few places that raise; more come from generated code.
_MOST_SHOWN = 20
_SHOWN_AT_THE_END = 10
_FRAME = '  File "'


@dataclass
class ErrorCounts:
    """Counts errors, so that each is shown in full once, and all of them in one line each at the end."""

    _counts: dict[tuple[str, ...], int] = field(default_factory=dict)
    _names: dict[tuple[str, ...], str] = field(default_factory=dict)
    others: int = 0

    def is_new(self, traceback: str) -> bool:
        """Count one error; whether it is the first of its kind and is to be shown in full."""
        # All but what differs from one record to the next: the messages.
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
        """What occurred more than once, the most frequent first."""
        often = sorted((count, known) for known, count in self._counts.items() if count > 1)[::-1]
        lines = [f"{count:,} times {self._names[known]}" for count, known in often[:_SHOWN_AT_THE_END]]
        rest = self.others + sum(count for count, _ in often[_SHOWN_AT_THE_END:])
        return [*lines, f"{rest:,} times other errors"] if rest else lines
