"""Measuring on a machine that is shared: what ran while the processor was slowed down by others is run again.

A loop of known work is timed before and after. On a virtual machine it can take twice as long from one second to the
next, and then a ratio says which program ran in the better moment.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_TOLERANCE = 1.25
_TRIES = 4


@dataclass
class Calm:
    """``disturbed`` counts the measurements that were not taken, ``accepted`` those that never found a calm moment."""

    fastest: float = field(default_factory=lambda: min(_known_work() for _ in range(40)))
    disturbed: int = 0
    accepted: int = 0

    def __call__(self, what: str, program: Callable[[], float]) -> float:
        """What the program measured of itself, in a calm moment if one comes in so many tries."""
        best = (float("inf"), 0.0)
        for _ in range(_TRIES):
            before = self._slowdown()
            seconds = program()
            slowdown = max(before, self._slowdown())
            calm = slowdown <= _TOLERANCE
            print(f"{what}: {seconds:.2f} s{'' if calm else ', disturbed'}", file=sys.stderr)
            if calm:
                return seconds
            self.disturbed += 1
            best = min(best, (slowdown, seconds))
        self.accepted += 1
        return best[1]

    def __str__(self) -> str:
        return f"{self.disturbed} disturbed measurements repeated, {self.accepted} taken for want of a calm moment"

    def _slowdown(self) -> float:
        taken = sorted(_known_work() for _ in range(5))[2]
        self.fastest = min(self.fastest, taken)
        return taken / self.fastest


def _known_work() -> float:
    began, total = time.perf_counter(), 0
    for number in range(300_000):
        total += number
    return time.perf_counter() - began
