"""A fair queue of writers, for a database that allows one writer at a time."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class NoTurnError(Exception):
    """No turn came within the time limit."""


class Turns:
    """One turn at a time, in the order of the calls; ``urgent`` calls go before all others.

    The end of a turn hands the turn to the next waiting thread. A new caller cannot overtake it, so a thread waits only
    for those before it. A connection pool guarantees no order: with 32 busy handlers, the fetching thread once waited
    ten seconds to save its progress.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._urgent: deque[threading.Event] = deque()
        self._others: deque[threading.Event] = deque()

    @contextmanager
    def turn(self, *, urgent: bool, seconds: float) -> Iterator[None]:
        """Wait for a turn. Raises NoTurnError if none comes within this many seconds."""
        self._take(self._urgent if urgent else self._others, seconds)
        try:
            yield
        finally:
            self._hand_over()

    @property
    def waiting(self) -> int:
        """How many threads wait, for tests."""
        with self._lock:
            return len(self._urgent) + len(self._others)

    def _take(self, line: deque[threading.Event], seconds: float) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            mine = threading.Event()
            line.append(mine)
        if mine.wait(seconds):
            return
        with self._lock:
            if mine.is_set():  # the turn came between the timeout and the lock
                return
            line.remove(mine)
        raise NoTurnError(f"no turn to write came within {seconds:g} s")

    def _hand_over(self) -> None:
        with self._lock:
            line = self._urgent or self._others
            if line:
                line.popleft().set()
            else:
                self._is_taken = False
