"""The works that threads of workers take, each as soon as it is free."""

from collections import deque
from queue import SimpleQueue
from threading import Lock

from penstock.app.attempts.work import Work


class WorkQueue:
    """Gives a work to the thread that began to wait last.

    Its code and data are most likely still in the processor's caches, and the other threads sleep on. With a queue that
    all threads wait at, they would take turns. None ends the thread that takes it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # Under the lock: works that no thread waited for, or threads that wait, each at a queue of its own.
        self._works: deque[Work | None] = deque()
        self._waiting: list[SimpleQueue[Work | None]] = []

    def put(self, work: Work | None) -> None:
        with self._lock:
            if not self._waiting:
                self._works.append(work)
                return
            thread = self._waiting.pop()
        thread.put(work)

    def get(self, own: "SimpleQueue[Work | None]") -> Work | None:
        """Wait for the next work. ``own`` is a queue of the thread that calls this, which nobody else uses."""
        with self._lock:
            if self._works:
                return self._works.popleft()
            self._waiting.append(own)
        return own.get()
