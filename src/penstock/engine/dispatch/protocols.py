"""What the dispatcher needs from the fetcher, the workers and the outbox.

The testing kit implements these protocols in memory.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.app.attempts.work import Work
from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Commits, ToFetcher


class FetcherSide(Protocol):
    """Carries out commands later, on its own thread, and answers with messages to the dispatcher's inbox."""

    def ask(self, command: ToFetcher) -> None: ...

    def leave(self) -> None:
        """Leave the group: revoke all partitions (the dispatcher drains them), commit, and answer with ``Left``."""


class WorkersSide(Protocol):
    """Runs at most ``concurrency`` works at once, the further ones after them; each ends with ``Worked``."""

    def submit(self, works: Sequence[Work]) -> None: ...

    def resize(self, concurrency: int) -> None:
        """Run at most so many works at once from now on. Those in progress are not interrupted."""


class OutboxSide(Protocol):
    """Produces records; it puts Delivered, Refused or Undeliverable into the dispatcher's inbox for each."""

    @property
    def is_full(self) -> bool: ...

    def send(self, sends: Iterable[Send]) -> Sequence[Send]:
        """Produce these. Returns those that count as acknowledged at once: with exactly-once, all that were queued."""

    def flush(self) -> None:
        """Produce what waits because the client's buffer was full."""


class TransactorSide(OutboxSide, Protocol):
    """An outbox that commits too: produced records and commits are in one transaction."""

    def commit(self, commits: Commits, losses: int) -> None:
        """End the transaction with these commits; ``losses`` is how many Lost messages the dispatcher has taken."""

    def reset(self) -> None:
        """Drop everything that is not committed, because all epochs are over."""
