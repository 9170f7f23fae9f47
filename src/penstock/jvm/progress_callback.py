"""The callback with which long work reports its progress."""

from typing import Protocol


class ProgressCallback(Protocol):
    """Called with a short line, and with counts if the total is known; ``unit`` is what they count."""

    def __call__(self, text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None: ...


def silent(text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
    """Ignore the progress."""
