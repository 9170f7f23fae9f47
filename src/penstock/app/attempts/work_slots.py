"""The works that wait for a worker thread, and how many run. Both engines use it."""

from collections import deque
from collections.abc import Iterable
from threading import Lock

from penstock.app.attempts.work import Work


class WorkSlots:
    """Lets at most ``limit`` works run at once, in the order in which they came.

    One thread adds works and calls ``start``; the threads of workers call ``next``.
    """

    def __init__(self, limit: int) -> None:
        self._lock = Lock()
        # Under the lock.
        self._limit = limit
        self._waiting: deque[Work] = deque()
        self._running = 0

    @property
    def running(self) -> int:
        return self._running

    def add(self, works: Iterable[Work]) -> list[Work]:
        """Queue these works. Returns those that start now: the caller gives each to a worker that is free."""
        with self._lock:
            self._waiting.extend(works)
            return self._started()

    def resize(self, limit: int) -> list[Work]:
        """Let so many works run at once from now on. Returns those that start now, as ``add`` does."""
        with self._lock:
            self._limit = limit
            return self._started()

    def _started(self) -> list[Work]:
        waiting = self._waiting
        started = [waiting.popleft() for _ in range(min(len(waiting), self._limit - self._running))]
        self._running += len(started)
        return started

    def next(self) -> Work | None:
        """A worker has finished a work: the next one for it, or None if it is free."""
        with self._lock:
            if self._waiting and self._running <= self._limit:
                return self._waiting.popleft()
            self._running -= 1
            return None
