"""Requests a clean stop on the first SIGINT or SIGTERM, or after a time. The second signal ends the process at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals(
    stop: threading.Event, say: Callable[[str], None], *, or_after: float | None = None
) -> Iterator[None]:
    """Set ``stop`` on a signal or after ``or_after`` seconds while the block runs; then restore the handlers."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            # Nothing is lost: Kafka redelivers what was not committed.
            os._exit(128 + number)
        stop.set()
        say("Stopping cleanly. Press Ctrl+C or send the signal again to stop at once.")

    timer = threading.Timer(min(inf if or_after is None else or_after, threading.TIMEOUT_MAX), stop.set)
    timer.daemon = True
    if or_after is not None:
        timer.start()
    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
