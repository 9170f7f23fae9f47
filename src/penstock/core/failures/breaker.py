"""A breaker: stop instead of dead-lettering, when nearly everything fails."""

from collections import deque
from dataclasses import dataclass

from penstock.errors import ConfigError


@dataclass(frozen=True)
class Breaker:
    """Stop the app when of its last ``window`` records at least the share ``share`` went to the dead letters.

    One poison record is the record's fault. When nearly all fail, it is more likely a database that is away or a new
    version of the handler, and a dead-letter topic full of good records helps nobody.
    """

    share: float = 0.9
    window: int = 1_000

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ConfigError(
                f"Breaker.share={self.share!r} is not a share of records.", hint="Use a number above 0, up to 1."
            )
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise ConfigError(
                f"Breaker.window={self.window!r} is not a count of records.", hint="Use a whole number from 1 on."
            )


class Circuit:
    """What a breaker has seen. Once it is open it stays so: what comes back while the app stops is not written either.

    Records finish by the thousand, so they are kept as stretches that ended alike.
    """

    def __init__(self, breaker: Breaker) -> None:
        self.breaker = breaker
        self.is_open = False
        self._stretches: deque[tuple[bool, int]] = deque()  # dead letters or not, and how many
        self._seen = 0
        self._dead = 0

    def finished(self, count: int) -> None:
        """So many records are done."""
        if count:
            self._add(min(count, self.breaker.window), dead=False)

    def lets_through(self) -> bool:
        """Whether one more record may become a dead letter; then it counts as one."""
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
        if self._stretches and self._stretches[-1][0] is dead:
            count += self._stretches.pop()[1]
        self._stretches.append((dead, count))
        while self._seen > self.breaker.window:
            was_dead, length = self._stretches.popleft()
            dropped = min(length, self._seen - self.breaker.window)
            self._seen -= dropped
            self._dead -= dropped if was_dead else 0
            if dropped < length:
                self._stretches.appendleft((was_dead, length - dropped))
