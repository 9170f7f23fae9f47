"""When a failed record is attempted again."""

from dataclasses import dataclass

from penstock.core.duration import Duration, seconds
from penstock.errors import ConfigError

# Together they keep the growth inside a float, whatever the number of attempts.
_MAX_FACTOR = 100
_MAX_EXPONENT = 64


@dataclass(frozen=True)
class Retry:
    """Attempt a failed record up to ``attempts`` times in all, waiting longer each time.

    The first wait is ``first``; each further one is ``factor`` times longer, up to ``limit``; each is moved at random
    by up to the share ``jitter`` either way, so that many failing records do not come back at one moment.
    """

    attempts: int = 3
    first: Duration = "1s"
    factor: float = 2.0
    limit: Duration = "1m"
    jitter: float = 0.2

    def __post_init__(self) -> None:
        seconds(self.first, name="Retry.first")
        seconds(self.limit, name="Retry.limit")
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise ConfigError(
                f"Retry.attempts={self.attempts!r} is not a count of attempts.",
                hint="It counts the first one too: 1 means no retries.",
            )
        if not 1 <= self.factor <= _MAX_FACTOR:
            raise ConfigError(
                f"Retry.factor={self.factor!r} does not lengthen waits sensibly.", hint="Use a number from 1 to 100."
            )
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"Retry.jitter={self.jitter!r} is not a share.", hint="Use a number from 0 to 1.")

    def delay_after(self, attempt: int, random: float) -> float | None:
        """Seconds to wait after this failed attempt (the first is 1), or None if it was the last.

        ``random`` is a number from 0 up to 1 and places the wait inside its jitter.
        """
        if attempt >= self.attempts:
            return None
        limit = seconds(self.limit, name="Retry.limit")
        growth = self.factor ** min(attempt - 1, _MAX_EXPONENT)
        wait = min(limit, seconds(self.first, name="Retry.first") * growth)
        return wait * (1 + self.jitter * (2 * random - 1))


NO_RETRY = Retry(attempts=1)
