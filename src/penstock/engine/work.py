"""A run of records while a worker has it."""

from penstock.core.dispatch import Run
from penstock.core.outcome import Failed, Outcome


class Work:
    """The worker adds outcomes; the dispatcher collects them, also while the worker is busy with the next record.

    Only the worker appends and only the dispatcher counts what it has taken, so neither needs a lock.
    """

    __slots__ = ("_has_dead_letter", "_outcomes", "_taken", "records", "run")

    def __init__(self, run: Run, *, has_dead_letter: bool) -> None:
        self.run = run
        # The dispatcher takes records off the run as their outcomes come in, so the worker has its own list.
        self.records = tuple(run.records)
        self._has_dead_letter = has_dead_letter
        self._outcomes: list[Outcome] = []
        self._taken = 0

    # The worker's side.

    @property
    def may_go_on(self) -> bool:
        return self.run.epoch.dispatching

    def add(self, outcome: Outcome) -> bool:
        """Note an outcome; False where the lane must wait for what the dispatcher makes of it."""
        self._outcomes.append(outcome)
        # A record that goes straight to the dead letters holds nobody up.
        return not isinstance(outcome, Failed) or (outcome.final and self._has_dead_letter)

    # The dispatcher's side.

    def collect(self, *, last: bool) -> list[Outcome]:
        """The outcomes since the last time; ``last`` once the worker is through."""
        end = len(self._outcomes)
        if not last and end and isinstance(self._outcomes[end - 1], Failed):
            # The worker may be about to say that it stopped there, and the two belong together.
            end -= 1
        new = self._outcomes[self._taken : end]
        self._taken = max(self._taken, end)
        return new
