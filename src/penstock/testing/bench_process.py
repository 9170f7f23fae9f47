"""An app as one process would run it: a member for each handler, from a start to a clean stop or a crash."""

from collections.abc import Callable, Collection
from itertools import count
from math import inf

from penstock.app import App
from penstock.core.records.record import TopicPartition
from penstock.engine.observe.running_app import RunningApp
from penstock.errors import ConfigError, PenstockError
from penstock.testing.bench_member import Member
from penstock.testing.world import World

# Rounds without an end in sight: far more than any test has records.
_MOST_ROUNDS = 1_000_000
# What is due by this much later than asked for is due: sums of fractions of seconds are not exact.
_ROUNDING_SECONDS = 1e-6
# The least that time moves on, where something is due at every moment.
_TICK_SECONDS = 0.001


class Process:
    def __init__(self, app: App, world: World) -> None:
        self._clock = world.clock
        self._loop = world.loop
        self._members = [Member(handler, world) for handler in app.handlers]
        self.control = RunningApp(self._members, lambda tps: {each: world.broker.log(each).end for each in tps})
        """What ``app.progress()`` and ``app.commit()`` ask."""

    @property
    def error(self) -> PenstockError | None:
        return next((member.error for member in self._members if member.error is not None), None)

    def settle(self) -> None:
        """Until nothing can happen at this moment of the clock."""
        for rounds in count():
            # Everybody in every round: what one does may wake any other.
            self._loop.settle()
            moved = [member.turn() for member in self._members]
            if not any(moved):
                return
            if rounds >= _MOST_ROUNDS:
                raise ConfigError(
                    f"The app is still busy after {rounds:,} rounds at one moment of the clock.",
                    hint="Do two handlers feed each other for ever?",
                )

    def advance(self, span: float) -> None:
        """Let so much time pass, doing what falls due in its order; ends early at an error."""
        target = self._clock.elapsed() + span
        self.settle()
        while self.error is None and (due := self._next_due(target)) <= target + _ROUNDING_SECONDS:
            self._move_to(due)
        if self.error is None:
            self._clock.move_to(target)
            self.settle()

    def stop(self, reason: str) -> None:
        """In good order, waiting for what is in progress as long as its handler's drain timeout says."""
        for member in self._members:
            member.stop(reason)
        self._until(lambda: all(member.has_left for member in self._members))

    def rebalance(self, lost: Collection[TopicPartition], revoked: Collection[TopicPartition]) -> None:
        for member in self._members:
            member.fetcher.lose(lost)
            member.fetcher.revoke(revoked)
        self._until(lambda: not any(member.fetcher.is_revoking for member in self._members))

    def kill(self) -> None:
        """No goodbye: nothing of it runs on."""
        for member in self._members:
            member.kill()
        self._loop.cancel_all()

    def _until(self, reached: Callable[[], bool]) -> None:
        """Let time pass until it is; only for what the engine itself puts an end to."""
        self.settle()
        while not reached():
            self._move_to(self._next_due())

    def _next_due(self, horizon: float = inf) -> float:
        """When the next thing happens; nobody looks behind the horizon."""
        members = [member for member in self._members if not member.has_left]
        due = min([self._loop.next_due, *(member.next_due() for member in members)])
        return min([due, *(member.next_commit(min(due, horizon)) for member in members)])

    def _move_to(self, due: float) -> None:
        now = self._clock.elapsed()
        self._clock.move_to(due if due > now else now + _TICK_SECONDS)
        self.settle()
