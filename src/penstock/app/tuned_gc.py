"""Python's garbage collector, made calm while an engine runs.

It looks for cycles whenever some hundred objects more were made than freed. With thousands of records in flight, which
are not in cycles, that is all the time and in vain: it took a quarter of the engine's time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# More than the records in flight make at once, so that it looks only when something really grows.
_OBJECTS = 50_000
_GENERATIONS = (20, 50)


@contextmanager
def tuned_gc() -> Iterator[None]:
    """Where somebody has set or stopped the collector already, that is left as it is."""
    before = gc.get_threshold()
    if not gc.isenabled() or before[0] not in (700, 2_000):
        yield
        return
    gc.set_threshold(_OBJECTS, *_GENERATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
