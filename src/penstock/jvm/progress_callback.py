"""How long work tells its caller where it is."""

from typing import Protocol


class Progress(Protocol):
    """Called with a short line, and with counts where the total is known; ``unit`` is what is counted."""

    def __call__(self, text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None: ...


def silent(text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None:
    """Report to nobody."""
