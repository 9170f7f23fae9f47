"""A bundle of runs while a worker has it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from penstock.core.failures.outcome import Failed, Outcome
from penstock.core.progress.lease import Lease
from penstock.core.scheduling.effects import Result
from penstock.core.scheduling.lanes import AnyRecord, Run

T = TypeVar("T")


class Work:
    """The worker takes runs off the front, and records of unordered and mixed ones; the dispatcher takes the rest back.

    Both sides use only operations that are atomic by themselves (a pop, an append, a clear, a flag), and no lock.
    """

    __slots__ = (
        "_batch", "_clock", "_collected", "_has_dead_letter", "_open", "_pending", "_seen", "_seen_since", "_started",
        "began", "seconds", "stalled",
    )  # fmt: skip

    def __init__(self, runs: list[Run], *, has_dead_letter: bool, clock: Callable[[], float]) -> None:
        self._pending = deque(runs)
        self._started: list[Run] = []
        self._open: tuple[Run, list[AnyRecord]] | None = None  # a run, and what its worker reads it from
        self._collected = 0
        self._batch: list[Run] = []
        self._has_dead_letter = has_dead_letter
        self._clock = clock
        self._seen, self._seen_since = (0, 0), 0.0
        self.began: float | None = None
        self.stalled = False
        self.seconds = 0.0

    @property
    def unstarted(self) -> list[Run]:
        return list(self._pending)

    # The worker's side.

    def runs(self) -> Iterator[Run]:
        """One run after the other, as long as there are any; each is done when the next is asked for."""
        self.began = self._clock()
        while True:
            try:
                run = self._pending.popleft()
            except IndexError:
                break
            self._started.append(run)
            yield run
            run.done = True
        self.seconds = self._clock() - self.began

    def records(self, run: Run) -> Iterator[AnyRecord]:
        """The records of the run started last, as far as the dispatcher does not take them back meanwhile."""
        lane = run.lane
        if not lane.mixed and (lane.ordered or len(run.records) == 1):
            return iter(run.records)
        # Whoever reads a list ends where it ends by then, so that to take the rest away is to clear it.
        read = list(run.records)
        self._open = (run, read)
        return iter(read)

    def as_batch(self, offset_of: Callable[[AnyRecord], int], lease: Lease) -> tuple[list[AnyRecord], list[int]]:
        """All records of all runs at once, and which attempt at each this is; ``note_batch`` takes their outcomes."""
        self.began = self._clock()
        runs = _pop_all(self._pending.popleft)
        self._started.extend(runs)
        self._batch = [run for run in runs if run.epoch.dispatching and self.began <= lease.until]
        records: list[AnyRecord] = []
        numbers: list[int] = []
        for run in self._batch:
            records += run.records
            epoch = run.epoch
            # Hardly ever has anything failed before, so hardly ever is there something to look up.
            known = [epoch.attempt_at(offset_of(each)) for each in run.records] if epoch.failures else None
            numbers += known or [1] * len(run.records)
        return records, numbers

    def note_batch(self, outcomes: Sequence[Outcome]) -> None:
        position = 0
        for run in self._batch:
            run.outcomes.extend(outcomes[position : position + len(run.records)])
            position += len(run.records)
        for run in self._started:
            run.done = True
        self.seconds = self._clock() - (self.began or 0.0)

    def stops_at(self, run: Run, failure: Failed) -> bool:
        """Whether the run cannot go on before the dispatcher has decided what becomes of this failure."""
        # A record that goes straight to the dead letters holds nobody up, and without an order none does.
        return failure.halts or (run.lane.ordered and not (failure.final and self._has_dead_letter))

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
            if done and not run.taken:
                results.append((run, run.outcomes, True))
                self._collected += 1
                continue
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

    def current(self, now: float) -> tuple[Run, AnyRecord, float] | None:
        """The record that the worker is at, and for how long it has been seen to be."""
        attempted, started = self.attempted, len(self._started)
        if (attempted, started) != self._seen:
            self._seen, self._seen_since = (attempted, started), now
        run = self._started[-1] if self._started else None
        if run is None or run.done or len(run.outcomes) >= len(run.records):
            return None
        return run, run.records[len(run.outcomes)], now - self._seen_since

    def take_back(self) -> list[Run]:
        """What the worker has not begun, as runs: others can have them while it is stuck."""
        taken = _pop_all(self._pending.pop)
        if self._open is not None and not self._open[0].done:
            taken.extend(self._split(*self._open))
        return taken

    def _split(self, run: Run, read: list[AnyRecord]) -> list[Run]:
        read.clear()  # from here on its worker begins no other record
        outcomes = run.outcomes
        begun = len(outcomes)
        last = outcomes[begun - 1] if begun else None
        if not (isinstance(last, Failed) and self.stops_at(run, last)):
            # It is at the next one, or between the two: then it leaves that one undone, and hands it back by itself.
            begun += 1
        tail = run.records[begun:]
        # Of a mixed lane, what is not with this worker waits for the split, too.
        return [run.split(tail)] if tail or run.lane.mixed else []


def _pop_all(pop: Callable[[], T]) -> list[T]:
    """Everything that the other side has not popped."""
    popped = []
    while True:
        try:
            popped.append(pop())
        except IndexError:
            return popped
