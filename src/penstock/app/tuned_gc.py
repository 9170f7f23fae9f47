"""Python's garbage collector runs less often while an engine runs.

By default it searches for cycles whenever some hundred more objects were created than freed. With thousands of records
in flight, which form no cycles, it runs all the time and finds nothing: that took a quarter of the engine's time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# More objects than the records in flight need, so that it runs only when memory really grows.
_OBJECTS = 50_000
_GENERATIONS = (20, 50)


@contextmanager
def tuned_gc() -> Iterator[None]:
    """Raise the thresholds inside the block, unless the user has changed or disabled the collector."""
    before = gc.get_threshold()
    if not gc.isenabled() or before[0] not in (700, 2_000):
        yield
        return
    gc.set_threshold(_OBJECTS, *_GENERATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
