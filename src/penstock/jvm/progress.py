"""How long work tells its caller where it is."""

from typing import Protocol


class Progress(Protocol):
    """Called with a short line, and with counts where the total is known."""

    def __call__(self, text: str, *, done: int = 0, total: int = 0) -> None: ...


def silent(text: str, *, done: int = 0, total: int = 0) -> None:
    """Report to nobody."""
