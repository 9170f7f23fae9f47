"""The first SIGINT or SIGTERM asks for a clean stop; the second ends the process at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals(stop: threading.Event, tell: Callable[[str], None]) -> Iterator[None]:
    """While inside, signals set ``stop``; afterwards they mean what they meant before."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            # Nothing is lost: what was not committed is delivered again.
            os._exit(128 + number)
        stop.set()
        tell("Stopping cleanly; once more to stop at once.")

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
