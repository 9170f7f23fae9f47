"""``Retry``: how many times, and after which waits, a failed record is attempted again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.text.durations import Duration, seconds
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError

# Together they keep the growth within the range of a float, for any number of attempts.
_MAX_FACTOR = 100
_MAX_EXPONENT = 64


@suggests_options
@dataclass(frozen=True)
class Retry:
    """Attempt a failed record up to ``attempts`` times in total, with a longer wait each time.

    The first wait is ``first``; each further wait is ``factor`` times longer, up to ``limit``. Jitter makes each wait
    longer or shorter at random, by at most the fraction ``jitter``, so that many failing records are not all attempted
    again at the same time.
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
                f"Retry.attempts={self.attempts!r} is not a number of attempts.",
                hint="Use a whole number of at least 1. It includes the first attempt: 1 means no retries.",
            )
        if not 1 <= self.factor <= _MAX_FACTOR:
            raise ConfigError(
                f"Retry.factor={self.factor!r} is not a number from 1 to 100.", hint="Use 2 to double each wait."
            )
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"Retry.jitter={self.jitter!r} is not a fraction.", hint="Use a number from 0 to 1.")

    def wait_after(self, attempt: int) -> float | None:
        """Seconds to wait after this failed attempt (the first is 1), without jitter; None if it was the last."""
        if attempt >= self.attempts:
            return None
        limit = seconds(self.limit, name="Retry.limit")
        growth = self.factor ** min(attempt - 1, _MAX_EXPONENT)
        return min(limit, seconds(self.first, name="Retry.first") * growth)

    def jittered(self, wait: float, random: float) -> float:
        """The wait with jitter; ``random`` is a number from 0 to 1."""
        return wait * (1 + self.jitter * (2 * random - 1))


NO_RETRY = Retry(attempts=1)
DEFAULT_RETRY = Retry()

# The keys are exception classes. Mapping is invariant in its keys: with `type[BaseException]`, type checkers would
# reject a user's dict[type[OSError], Retry].
RetryPolicy = Retry | Mapping[Any, Retry]
"""One Retry for all errors, or one for each exception class."""


def retry_for(policy: RetryPolicy, kind: type[BaseException]) -> Retry:
    """The Retry for an exception class: that of its first base class in the policy, or ``Retry()`` if there is none.

    Base classes are tried in Python's method resolution order, so the order of the mapping does not matter.
    """
    if isinstance(policy, Retry):
        return policy
    listed = (policy[base] for base in kind.__mro__ if base in policy)
    return next(listed, DEFAULT_RETRY)


def check_policy(policy: object) -> None:
    """Raise ConfigError unless ``policy`` is a Retry or a mapping from exception classes to Retries."""
    if isinstance(policy, Retry):
        return
    if not isinstance(policy, Mapping):
        raise ConfigError(
            f"retry={policy!r} is not a Retry.",
            hint="Use Retry(attempts=5), or one for each exception class: {TimeoutError: Retry(attempts=10), ...}.",
        )
    if not policy:
        raise ConfigError("retry={} lists no exception class.", hint="Leave retry out to use Retry().")
    for kind, retry in policy.items():
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise ConfigError(
                f"retry has the key {kind!r}, which is not an exception class.",
                hint="Use exception classes as keys, such as TimeoutError or Exception.",
            )
        if not isinstance(retry, Retry):
            raise ConfigError(
                f"retry[{kind.__name__}] is {retry!r}, which is not a Retry.",
                hint="Use Retry(attempts=5), or NO_RETRY for errors that need no further attempt.",
            )
