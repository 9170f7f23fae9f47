"""Python's garbage collector runs less often while an engine runs.

By default it searches for cycles whenever some hundred more objects were created than freed. With thousands of records
in flight, which form no cycles, it runs all the time and finds nothing: that took a quarter of the engine's time.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# More objects than the records in flight need, so that it runs only when memory really grows.
_OBJECTS = 50_000
_GENERATIONS = (20, 50)
# Python's own first threshold, in the versions that Penstock supports.
_DEFAULTS = (700, 2_000)


_lock = threading.Lock()
# How many apps run in this process, and the thresholds before the first of them. Both under the lock.
_running = 0
_before: tuple[int, int, int] | None = None


@contextmanager
def tuned_gc() -> Iterator[None]:
    """Raise the thresholds while any app runs, unless the user has changed or disabled the collector."""
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _running, _before  # noqa: PLW0603 - the collector is one for the process
    with _lock:
        _running += 1
        found = gc.get_threshold()
        if _running == 1 and gc.isenabled() and found[0] in _DEFAULTS:
            _before = found
            gc.set_threshold(_OBJECTS, *_GENERATIONS)


def _end() -> None:
    global _running, _before  # noqa: PLW0603 - as above
    with _lock:
        _running -= 1
        if _running == 0 and _before is not None:
            gc.set_threshold(*_before)
            _before = None
