"""What the dispatcher asks of those around it: all that a stand-in for them must offer.

The third of them, ``Workers``, stands with its implementations.
"""

from collections.abc import Iterable
from typing import Protocol

from penstock.core.decisions import Send
from penstock.engine.messages import ToFetcher


class FetcherSide(Protocol):
    """Carries out commands some time later, and answers into the inbox."""

    def ask(self, command: ToFetcher) -> None: ...

    def leave(self) -> None:
        """Give everything back, which asks the dispatcher to drain it, commit, and say ``Left``."""


class OutboxSide(Protocol):
    """Writes outputs and dead letters; the inbox gets Delivered, Refused or Undeliverable for each."""

    @property
    def is_full(self) -> bool: ...

    def send(self, sends: Iterable[Send]) -> None: ...

    def flush(self) -> None:
        """Try again what waits because it was full."""
