"""When a failed record is attempted again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.text.durations import Duration, seconds
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

    def wait_after(self, attempt: int) -> float | None:
        """Seconds to wait after this failed attempt (the first is 1), before jitter, or None if it was the last."""
        if attempt >= self.attempts:
            return None
        limit = seconds(self.limit, name="Retry.limit")
        growth = self.factor ** min(attempt - 1, _MAX_EXPONENT)
        return min(limit, seconds(self.first, name="Retry.first") * growth)

    def jittered(self, wait: float, random: float) -> float:
        """The wait, moved inside its jitter to where ``random``, a number from 0 up to 1, places it."""
        return wait * (1 + self.jitter * (2 * random - 1))


NO_RETRY = Retry(attempts=1)
DEFAULT_RETRY = Retry()

# Keys are types of errors. A Mapping takes just the type of key that it names, so `type[BaseException]` would refuse a
# user's dict[type[OSError], Retry].
RetryPolicy = Retry | Mapping[Any, Retry]
"""One Retry for every error, or one for each type of error."""


def retry_for(policy: RetryPolicy, kind: type[BaseException]) -> Retry:
    """The Retry of the nearest listed class that this error is one of; ``Retry()`` where none is listed.

    Nearest as Python itself looks up methods, so the order of the mapping makes no difference.
    """
    if isinstance(policy, Retry):
        return policy
    listed = (policy[base] for base in kind.__mro__ if base in policy)
    return next(listed, DEFAULT_RETRY)


def check_policy(policy: object) -> None:
    """Refuse what is neither a Retry nor a mapping from types of errors to Retries."""
    if isinstance(policy, Retry):
        return
    if not isinstance(policy, Mapping):
        raise ConfigError(
            f"retry={policy!r} is not a Retry.",
            hint="Use Retry(attempts=5), or one for each type of error: {TimeoutError: Retry(attempts=10), ...}.",
        )
    if not policy:
        raise ConfigError("retry={} lists no type of error.", hint="Leave it out, which means Retry().")
    for kind, retry in policy.items():
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise ConfigError(
                f"retry lists {kind!r}, which is not a type of error.",
                hint="Its keys are exception classes, such as TimeoutError or Exception.",
            )
        if not isinstance(retry, Retry):
            raise ConfigError(
                f"retry gives {kind.__name__} {retry!r}, which is not a Retry.",
                hint="Use Retry(attempts=5), or NO_RETRY for what should not be tried again.",
            )
