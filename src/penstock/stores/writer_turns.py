"""Who may write next in a database that has one writer at a time."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class NoTurnError(Exception):
    """Others were at it for too long."""


class Turns:
    """One turn at a time, in the order of asking; whoever asks with ``urgent`` comes before all others.

    A turn that ends is handed to the next in line. Nobody who comes at that moment gets in between, so a thread that
    asks waits for those before it and for no others. A connection pool promises no order: with 32 handlers at work, the
    thread that fetches once waited for ten seconds to save its progress.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._urgent: deque[threading.Event] = deque()
        self._others: deque[threading.Event] = deque()

    @contextmanager
    def turn(self, *, urgent: bool, seconds: float) -> Iterator[None]:
        """Waits for a turn; raises NoTurnError where none comes within so many seconds."""
        self._take(self._urgent if urgent else self._others, seconds)
        try:
            yield
        finally:
            self._hand_over()

    @property
    def waiting(self) -> int:
        """How many wait; for tests, which have nothing else to wait for."""
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
            if mine.is_set():  # handed over at the last moment
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
