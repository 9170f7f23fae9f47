"""A bundle of runs while a worker has it."""

import time
from collections import deque
from collections.abc import Iterator

from penstock.core.decisions import Result
from penstock.core.lanes import Run
from penstock.core.outcome import Failed


class Work:
    """The worker takes runs off the front; the dispatcher collects outcomes, and may take runs off the end again.

    Both sides only use operations that are atomic by themselves (a pop, an append, a flag), so neither needs a lock.
    """

    __slots__ = ("_collected", "_has_dead_letter", "_pending", "_started", "began", "seconds")

    def __init__(self, runs: list[Run], *, has_dead_letter: bool) -> None:
        self._pending = deque(runs)
        self._started: list[Run] = []
        self._collected = 0
        self._has_dead_letter = has_dead_letter
        self.began: float | None = None
        self.seconds = 0.0

    # The worker's side.

    def runs(self) -> Iterator[Run]:
        """One run after the other, as long as there are any; each is done when the next is asked for."""
        self.began = time.monotonic()
        while True:
            try:
                run = self._pending.popleft()
            except IndexError:
                break
            self._started.append(run)
            yield run
            run.done = True
        self.seconds = time.monotonic() - self.began

    def stops_at(self, run: Run, failure: Failed) -> bool:
        """Whether the run cannot go on before the dispatcher has decided what becomes of this failure."""
        # A record that goes straight to the dead letters holds nobody up, and without an order none does.
        return run.lane.ordered and not (failure.final and self._has_dead_letter)

    # The dispatcher's side.

    @property
    def attempted(self) -> int:
        return sum(len(run.outcomes) for run in self._started)

    def collect(self) -> list[Result]:
        """What came out since the last time."""
        results: list[Result] = []
        for run in self._started[self._collected :]:
            # Asked before looking at outcomes: none can follow once it is true.
            done = run.done
            end = len(run.outcomes)
            if not done and end and isinstance(run.outcomes[end - 1], Failed):
                # The worker may be about to say that it stopped there, and the two belong together.
                end -= 1
            new = run.outcomes[run.taken : end]
            if new or done:
                results.append((run, new, done))
            if not done:
                break
            self._collected += 1
        return results

    def take_back(self) -> list[Run]:
        """The runs that the worker has not begun: others can have them while it is stuck."""
        taken = []
        while True:
            try:
                taken.append(self._pending.pop())
            except IndexError:
                return taken
