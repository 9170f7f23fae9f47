"""A circuit breaker: if nearly every record fails, the app stops or pauses instead of dead-lettering the topic."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from penstock.core.text.durations import Duration, seconds
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError


@suggests_options
@dataclass(frozen=True)
class Breaker:
    """Stop the app when at least the fraction ``share`` of its last ``window`` records went to the dead-letter topic.

    If one record fails, the cause is that record. If nearly all fail, the cause is more likely a database that is down
    or a bug in a new version of the handler, and the good records should not end up in the dead-letter topic.

    With ``then="pause"`` the handler pauses instead, and a record that would become a dead letter goes back to its
    lane. Every ``probe`` one record is tried, and when one succeeds, all continue. ``on`` names the exceptions that
    count; by default all do.
    """

    share: float = 0.9
    window: int = 1_000
    then: Literal["stop", "pause"] = "stop"
    probe: Duration = "30s"
    on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.then not in {"stop", "pause"}:
            raise ConfigError(f"Breaker.then={self.then!r} does not exist.", hint='Use "stop" or "pause".')
        if seconds(self.probe, name="Breaker.probe") <= 0:
            raise ConfigError(f"Breaker.probe={self.probe!r} is no time.", hint='Use a duration such as "30s".')
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        for kind in kinds:
            if not isinstance(kind, type) or not issubclass(kind, BaseException):
                raise ConfigError(
                    f"Breaker.on has {kind!r}, which is not an exception class.",
                    hint="Use a tuple of exception classes, such as on=(ConnectionError, TimeoutError).",
                )
        object.__setattr__(self, "on", kinds)
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ConfigError(
                f"Breaker.share={self.share!r} is not a fraction.", hint="Use a number above 0 and at most 1."
            )
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise ConfigError(
                f"Breaker.window={self.window!r} is not a number of records.", hint="Use a whole number of at least 1."
            )

    def counts(self, error: BaseException) -> bool:
        """Whether a failure because of this error counts."""
        return not self.on or isinstance(error, self.on)


class Circuit:
    """The state of a breaker: how the last records of the app ended.

    Once open, it stays open: records that fail while the app stops are not dead-lettered either. Records finish by the
    thousand, so successive records with the same result are stored as one run with a length.
    """

    def __init__(self, breaker: Breaker) -> None:
        self.breaker = breaker
        self.is_open = False
        self.pauses = False
        """Whether it pauses the handler while it is open, instead of stopping the app."""
        self._runs: deque[tuple[bool, int]] = deque()  # whether they are dead letters, and how many
        self._seen = 0
        self._dead = 0

    def finished(self, count: int) -> None:
        """This many records finished without becoming dead letters."""
        if count:
            self._add(min(count, self.breaker.window), dead=False)

    def lets_through(self) -> bool:
        """Whether one more record may become a dead letter. If it may, it is counted as one."""
        if self.is_open or self.is_share_reached:
            self.is_open = True
            return False
        self._add(1, dead=True)
        return True

    @property
    def is_share_reached(self) -> bool:
        return self._seen == self.breaker.window and self._dead / self.breaker.window >= self.breaker.share

    def clear(self) -> None:
        """Begin to count anew."""
        self._runs.clear()
        self._seen = self._dead = 0

    def __str__(self) -> str:
        return f"{self._dead:,} of the last {self._seen:,} records"

    def _add(self, count: int, *, dead: bool) -> None:
        self._seen += count
        self._dead += count if dead else 0
        if self._runs and self._runs[-1][0] is dead:
            count += self._runs.pop()[1]
        self._runs.append((dead, count))
        while self._seen > self.breaker.window:
            was_dead, length = self._runs.popleft()
            dropped = min(length, self._seen - self.breaker.window)
            self._seen -= dropped
            self._dead -= dropped if was_dead else 0
            if dropped < length:
                self._runs.appendleft((was_dead, length - dropped))
