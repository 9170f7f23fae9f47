"""When what failed as a whole is started again: waits that grow while nothing gets better."""

from penstock.core.failures.retry import Retry

DEFAULT_RESTART = Retry(attempts=10, first="1s", factor=2, limit="1m")


class Restarts:
    """Counts failures in a row; what has got something done since the last one starts with the first wait again."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self.failures = 0

    def progressed(self) -> None:
        self.failures = 0

    def failed(self, random: float) -> float | None:
        """Seconds to wait before the next start, or None where this failure was the last to be borne.

        ``random``, a number from 0 up to 1, places the wait in its jitter.
        """
        self.failures += 1
        wait = self._retry.wait_after(self.failures)
        return None if wait is None else self._retry.jittered(wait, random)
