"""Whether members are alive: how long ago they polled and finished something, and what they are stuck at."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.engine.observe.member_metrics import MemberMetrics

# A poll comes every moment; one that is so late hangs, or the process does.
POLL_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class InProgress:
    """A record that a worker has been at for a while."""

    topic: str
    partition: int
    offset: int
    seconds: float


@dataclass(frozen=True)
class Health:
    """One member. ``finished_seconds_ago`` is None where nothing is in flight: then there is nothing to finish."""

    handler: str
    group: str
    member: str
    polled_seconds_ago: float
    finished_seconds_ago: float | None
    in_flight: int
    longest: tuple[InProgress, ...]

    def problems(self, *, stuck_after: float) -> list[str]:
        """What is wrong with it, in sentences."""
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
    """Where members of this process can be looked at, from any thread."""

    _looks: list[Callable[[], Health]] = field(default_factory=list)
    _measures: list[Callable[[], MemberMetrics]] = field(default_factory=list)

    def add(self, look: Callable[[], Health], measure: Callable[[], MemberMetrics] | None = None) -> None:
        self._looks.append(look)
        if measure is not None:
            self._measures.append(measure)

    def member_metrics(self) -> list[MemberMetrics]:
        return [measure() for measure in self._measures]

    def report(self, *, stuck_after: float) -> dict[str, Any]:
        members = [look() for look in self._looks]
        problems = [problem for member in members for problem in member.problems(stuck_after=stuck_after)]
        status = "starting" if not members else "failing" if problems else "ok"
        return {"status": status, "problems": problems, "members": [asdict(member) for member in members]}
