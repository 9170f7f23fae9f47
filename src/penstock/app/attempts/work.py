"""A bundle of runs while a worker has it.

It is here and not in ``core``, because two threads share it. Both engines and the testing kit use it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from typing import TypeVar

from penstock.core.failures.outcome import DONE, WITHOUT_CALL, Failed, Outcome, Unfinished
from penstock.core.progress.lease import Lease
from penstock.core.scheduling.effects import Result
from penstock.core.scheduling.lanes import AnyRecord, LaneRun

T = TypeVar("T")


class Work:
    """The runs that one worker has. Two threads share it: the worker's and the dispatcher's.

    The worker takes runs from the front; the dispatcher collects outcomes, and takes back the runs that a stuck worker
    has not begun. There is no lock: both sides use only operations that are atomic in CPython (pop, append, clear, a
    flag).
    """

    __slots__ = (
        "_batch", "_clock", "_collected", "_has_dead_letter", "_iterated", "_pending", "_seen", "_seen_since",
        "_started", "began", "seconds", "stalled", "thread",
    )  # fmt: skip

    def __init__(self, runs: list[LaneRun], *, has_dead_letter: bool, clock: Callable[[], float]) -> None:
        self._pending = deque(runs)
        self._started: list[LaneRun] = []
        self._iterated: tuple[LaneRun, list[AnyRecord]] | None = (
            None  # a run, and the list that its worker iterates over
        )
        self._collected = 0
        self._batch: list[LaneRun] = []
        self._has_dead_letter = has_dead_letter
        self._clock = clock
        self._seen, self._seen_since = (0, 0), 0.0
        self.began: float | None = None
        self.stalled = False
        self.thread = 0  # of the worker, for its stack
        self.seconds = 0.0

    @property
    def unstarted(self) -> list[LaneRun]:
        return list(self._pending)

    # Called by the worker.

    def runs(self) -> Iterator[LaneRun]:
        """Yield the runs one by one. A run is done when the worker asks for the next."""
        self.thread, self.began = get_ident(), self._clock()
        while True:
            try:
                run = self._pending.popleft()
            except IndexError:
                break
            self._started.append(run)
            yield run
            run.done = True
        self.seconds = self._clock() - self.began

    def records(self, run: LaneRun) -> Iterator[AnyRecord]:
        """Iterate over the records of the run started last, until the dispatcher takes the rest back."""
        lane = run.lane
        if not lane.mixed and (lane.ordered or len(run.records) == 1):
            return iter(run.records)
        # A list iterator ends where the list ends at that moment: clearing the list takes the rest back.
        read = list(run.records)
        self._iterated = (run, read)
        return iter(read)

    def as_batch(self, offset_of: Callable[[AnyRecord], int], lease: Lease) -> tuple[list[AnyRecord], list[int]]:
        """Take all records of all runs, with the attempt number of each; ``note_batch`` takes their outcomes."""
        self.thread, self.began = get_ident(), self._clock()
        runs = _pop_all(self._pending.popleft)
        self._started.extend(runs)
        self._batch = [run for run in runs if run.epoch.dispatching and self.began <= lease.until]
        records: list[AnyRecord] = []
        numbers: list[int] = []
        for run in self._batch:
            records += run.records
            epoch = run.epoch
            # Look attempts up only if something has failed, which is rare.
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

    def stops_at(self, run: LaneRun, outcome: Unfinished) -> bool:
        """Whether the worker must stop this run until the dispatcher has decided about this outcome."""
        if not isinstance(outcome, Failed):
            return run.lane.ordered
        # A record that surely becomes a dead letter delays no other record; without order, no failure does.
        return outcome.halts or (run.lane.ordered and not (outcome.final and self._has_dead_letter))

    @property
    def only_succeeded(self) -> bool:
        """Whether every record was attempted and succeeded without an output. For the worker, after its last record."""
        return not self._pending and all(run.outcomes.count(DONE) == len(run.records) for run in self._started)

    # Called by the dispatcher.

    @property
    def attempted(self) -> int:
        return sum([len(run.outcomes) for run in self._started])

    @property
    def has_success(self) -> bool:
        """Whether some call of the handler has succeeded."""
        none = (Unfinished, *WITHOUT_CALL)
        return any(not isinstance(outcome, none) for run in self._started for outcome in run.outcomes)

    @property
    def failed(self) -> int:
        """How many attempts failed for a reason that may lie in what the handler calls."""
        outcomes = (outcome for run in self._started for outcome in run.outcomes)
        return sum(1 for outcome in outcomes if isinstance(outcome, Failed) and outcome.is_of_the_call)

    def collect(self) -> list[Result]:
        """Return the outcomes since the last call."""
        results: list[Result] = []
        for run in self._started[self._collected :]:
            # Read ``done`` before the outcomes: once it is true, no more outcomes follow.
            done = run.done
            if done and not run.collected:
                results.append((run, run.outcomes, True))
                self._collected += 1
                continue
            end = len(run.outcomes)
            if not done and end and isinstance(run.outcomes[end - 1], Unfinished):
                # The worker may be about to stop the run at this outcome: wait, and report both together.
                end -= 1
            new = run.outcomes[run.collected : end]
            if new or done:
                results.append((run, new, done))
            if not done:
                break
            self._collected += 1
        return results

    def current(self, now: float) -> tuple[LaneRun, AnyRecord, float] | None:
        """The record that the worker handles now, and the seconds since a call first saw it there."""
        attempted, started = self.attempted, len(self._started)
        if (attempted, started) != self._seen:
            self._seen, self._seen_since = (attempted, started), now
        run = self._started[-1] if self._started else None
        if run is None or run.done or len(run.outcomes) >= len(run.records):
            return None
        return run, run.records[len(run.outcomes)], now - self._seen_since

    def take_back(self) -> list[LaneRun]:
        """Take the runs and records that the worker has not begun, so that other workers can have them."""
        taken = _pop_all(self._pending.pop)
        if self._iterated is not None and not self._iterated[0].done:
            taken.extend(self._split(*self._iterated))
        return taken

    def _split(self, run: LaneRun, read: list[AnyRecord]) -> list[LaneRun]:
        read.clear()  # the worker begins no further record of this run
        outcomes = run.outcomes
        begun = len(outcomes)
        last = outcomes[begun - 1] if begun else None
        if not (isinstance(last, Unfinished) and self.stops_at(run, last)):
            # The worker handles the next record, or is between two: then it returns that one unattempted with its run.
            begun += 1
        tail = run.records[begun:]
        # A run of a mixed lane is split even without a tail: its lane must be split into a lane for each key.
        return [run.split(tail)] if tail or run.lane.mixed else []


def _pop_all(pop: Callable[[], T]) -> list[T]:
    """Pop everything that the other thread has not popped."""
    popped = []
    while True:
        try:
            popped.append(pop())
        except IndexError:
            return popped
