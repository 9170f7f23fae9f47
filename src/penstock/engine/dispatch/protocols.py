"""What the dispatcher asks of those around it: all that a stand-in for them must offer.

The third of them, ``Workers``, stands with its implementations.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Commits, ToFetcher


class FetcherSide(Protocol):
    """Carries out commands some time later, and answers into the inbox."""

    def ask(self, command: ToFetcher) -> None: ...

    def leave(self) -> None:
        """Give everything back, which asks the dispatcher to drain it, commit, and say ``Left``."""


class OutboxSide(Protocol):
    """Writes outputs and dead letters; the inbox gets Delivered, Refused or Undeliverable for each."""

    @property
    def is_full(self) -> bool: ...

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        """Returns those whose records are finished by that, as the next commit can only count together with them."""

    def flush(self) -> None:
        """Try again what waits because it was full."""


class TransactorSide(OutboxSide, Protocol):
    """An outbox that commits as well: what was sent and what is committed count together."""

    def commit(self, commits: Commits, losses: int) -> None:
        """``losses`` is how often the dispatcher has heard that partitions were lost."""

    def reset(self) -> None:
        """Nothing that was sent and not committed counts any more; all epochs are over."""
