"""Marks the threads on which an engine calls the user's code.

A handler that waited there for the end of its own app would wait for itself.
"""

import threading

_marks = threading.local()


def mark_engine_thread() -> None:
    """Engines call it at the start of each thread that runs handlers, callbacks or hooks."""
    _marks.is_engine = True


def is_engine_thread() -> bool:
    """Return whether an engine has started the calling thread."""
    return getattr(_marks, "is_engine", False)
