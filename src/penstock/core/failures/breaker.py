"""A circuit breaker: if nearly every record fails, the app stops instead of dead-lettering the whole topic."""

from collections import deque
from dataclasses import dataclass

from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError


@suggests_options
@dataclass(frozen=True)
class Breaker:
    """Stop the app when at least the fraction ``share`` of its last ``window`` records went to the dead-letter topic.

    If one record fails, the cause is that record. If nearly all fail, the cause is more likely a database that is down
    or a bug in a new version of the handler, and the good records should not end up in the dead-letter topic.
    """

    share: float = 0.9
    window: int = 1_000

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ConfigError(
                f"Breaker.share={self.share!r} is not a fraction.", hint="Use a number above 0 and at most 1."
            )
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise ConfigError(
                f"Breaker.window={self.window!r} is not a number of records.", hint="Use a whole number of at least 1."
            )


class Circuit:
    """The state of a breaker: how the last records of the app ended.

    Once open, it stays open: records that fail while the app stops are not dead-lettered either. Records finish by the
    thousand, so successive records with the same result are stored as one run with a length.
    """

    def __init__(self, breaker: Breaker) -> None:
        self.breaker = breaker
        self.is_open = False
        self._runs: deque[tuple[bool, int]] = deque()  # whether they are dead letters, and how many
        self._seen = 0
        self._dead = 0

    def finished(self, count: int) -> None:
        """This many records finished without becoming dead letters."""
        if count:
            self._add(min(count, self.breaker.window), dead=False)

    def lets_through(self) -> bool:
        """Whether one more record may become a dead letter. If it may, it is counted as one."""
        full = self._seen == self.breaker.window
        if self.is_open or (full and self._dead / self.breaker.window >= self.breaker.share):
            self.is_open = True
            return False
        self._add(1, dead=True)
        return True

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
