"""When a failed engine or query restarts: the waits grow while it makes no progress."""

from penstock.core.failures.retry import Retry

DEFAULT_RESTART = Retry(attempts=10, first="1s", factor=2, limit="1m")


class Restarts:
    """Counts failures in a row. Progress between two failures resets the count, so the next wait is the shortest."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self.failures = 0

    def progressed(self) -> None:
        self.failures = 0

    def failed(self, random: float) -> float | None:
        """Seconds to wait before the restart, or None if there have been too many failures in a row.

        ``random``, a number from 0 to 1, selects the jitter.
        """
        self.failures += 1
        wait = self._retry.wait_after(self.failures)
        return None if wait is None else self._retry.jittered(wait, random)
