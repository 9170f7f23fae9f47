"""One process of an app on the bench: a member for each handler, from the start to a clean stop or a crash."""

from collections.abc import Callable, Collection, Sequence
from itertools import count
from math import inf

from penstock.app import Handler
from penstock.app.routing.route_reports import routed_events
from penstock.core.records.record import TopicPartition
from penstock.engine.observe.running_app import RunningApp
from penstock.errors import ConfigError, PenstockError
from penstock.testing.bench_member import BenchMember
from penstock.testing.world import World

# After so many rounds, far more than any test has records, the app counts as never idle.
_MAX_ROUNDS = 1_000_000
# A timer that is due this much later than the target is due: sums of fractions of seconds are not exact.
_ROUNDING_SECONDS = 1e-6
# The least that time moves, if something is due now.
_TICK_SECONDS = 0.001


class Process:
    def __init__(self, handlers: Sequence[Handler], world: World) -> None:
        self._clock = world.clock
        self._loop = world.loop
        for event in routed_events(handlers):
            world.emit(event)
        self._members = [BenchMember(handler, world) for handler in handlers]
        self.control = RunningApp(
            self._members,
            lambda tps: {each: world.broker.log(each).end for each in tps},
            emit=world.emit,
            now=world.clock.time,
        )
        """Answers ``app.progress()`` and ``app.commit()``, and takes commands."""

    @property
    def error(self) -> PenstockError | None:
        return next((member.error for member in self._members if member.error is not None), None)

    def settle(self) -> None:
        """Give all members turns until none can do anything without time passing."""
        for rounds in count():
            # Every member in every round: each may cause work for any other.
            self._loop.settle()
            moved = [member.turn() for member in self._members]
            if not any(moved):
                return
            if rounds >= _MAX_ROUNDS:
                raise ConfigError(
                    f"The app is still busy after {rounds:,} rounds without time passing.",
                    hint="Check whether two handlers write to each other's topics in an endless loop.",
                )

    def advance(self, span: float) -> None:
        """Let ``span`` seconds pass and do what falls due in order; an error ends it early."""
        target = self._clock.elapsed() + span
        self.settle()
        while self.error is None and (due := self._next_due(target)) <= target + _ROUNDING_SECONDS:
            self._move_to(due)
        if self.error is None:
            self._clock.move_to(target)
            self.settle()

    def stop(self, reason: str) -> None:
        """Stop all members cleanly; each waits for its records in progress up to its ``drain_timeout``."""
        for member in self._members:
            member.stop(reason)
        self._until(lambda: all(member.has_left for member in self._members))

    def rebalance(self, lost: Collection[TopicPartition], revoked: Collection[TopicPartition]) -> None:
        for member in self._members:
            member.fetcher.lose(lost)
            member.fetcher.revoke(revoked)
        self._until(lambda: not any(member.fetcher.is_revoking for member in self._members))

    def kill(self) -> None:
        """End at once, without commits; no handler continues."""
        for member in self._members:
            member.kill()
        self._loop.cancel_all()

    def _until(self, reached: Callable[[], bool]) -> None:
        """Let time pass until ``reached``; only for conditions that the engine itself reaches in bounded time."""
        self.settle()
        while not reached():
            self._move_to(self._next_due())

    def _next_due(self, horizon: float = inf) -> float:
        """When the next timer of any member is due; times after the horizon do not matter."""
        members = [member for member in self._members if not member.has_left]
        due = min([self._loop.next_due, *(member.next_due() for member in members)])
        return min([due, *(member.next_commit(min(due, horizon)) for member in members)])

    def _move_to(self, due: float) -> None:
        now = self._clock.elapsed()
        self._clock.move_to(due if due > now else now + _TICK_SECONDS)
        self.settle()
