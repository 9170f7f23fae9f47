"""Health and readiness of members: how long ago they polled and finished a record, and which records run for long."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.engine.observe.member_activity import MemberActivity
from penstock.engine.observe.member_metrics import MemberMetrics

# A member polls many times per second. After this time without a poll, the member or the process hangs.
POLL_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class InProgress:
    """A record that a handler has been running for a while."""

    topic: str
    partition: int
    offset: int
    seconds: float


@dataclass(frozen=True)
class Health:
    """The health of one member. ``finished_seconds_ago`` is None if no record is in flight."""

    handler: str
    group: str
    member: str
    polled_seconds_ago: float
    finished_seconds_ago: float | None
    in_flight: int
    longest: tuple[InProgress, ...]
    breaker: str | None = None
    """Why the breaker pauses the handler; None while it does not."""

    def problems(self, *, stuck_after: float) -> list[str]:
        """Return a sentence for each problem."""
        found = []
        if self.polled_seconds_ago > POLL_LIMIT_SECONDS:
            found.append(f"{self.handler} has not polled for {self.polled_seconds_ago:.0f} s.")
        found += [
            f"{self.handler} has been at {each.topic}[{each.partition}]@{each.offset} for {each.seconds:.0f} s."
            for each in self.longest
            if each.seconds > stuck_after
        ]
        return found


@dataclass
class HealthBoard:
    """Health and metrics of all members of this process, for any thread."""

    _health: list[Callable[[], Health]] = field(default_factory=list)
    _metrics: list[Callable[[], MemberMetrics]] = field(default_factory=list)
    _activities: list[Callable[[], MemberActivity | None]] = field(default_factory=list)
    _checks: Sequence[Callable[[], str | None]] = ()

    def add(
        self,
        health: Callable[[], Health],
        metrics: Callable[[], MemberMetrics] | None = None,
        activity: Callable[[], MemberActivity | None] | None = None,
    ) -> None:
        self._health.append(health)
        if metrics is not None:
            self._metrics.append(metrics)
        if activity is not None:
            self._activities.append(activity)

    def set_readiness(self, checks: Sequence[Callable[[], str | None]]) -> None:
        """Each check returns a sentence about what is not ready, or None."""
        self._checks = checks

    def ready_report(self) -> dict[str, Any]:
        """Run the checks one after the other; those of dependencies have a time limit."""
        if not self._checks:
            return {"status": "starting", "problems": ["The app is starting."]}
        problems = [problem for check in self._checks if (problem := check()) is not None]
        return {"status": "not ready" if problems else "ready", "problems": problems}

    def member_metrics(self) -> list[MemberMetrics]:
        return [metrics() for metrics in self._metrics]

    def activities(self) -> list[MemberActivity]:
        """What each member does now. It waits for their dispatchers."""
        return [found for activity in self._activities if (found := activity()) is not None]

    def report(self, *, stuck_after: float) -> dict[str, Any]:
        members = [health() for health in self._health]
        problems = [problem for member in members for problem in member.problems(stuck_after=stuck_after)]
        status = "starting" if not members else "failing" if problems else "ok"
        return {"status": status, "problems": problems, "members": [asdict(member) for member in members]}
