"""A Kafka consumer that only one thread may use."""

import threading
from typing import Any

from confluent_kafka import Consumer

from penstock.errors import StateError


class OwnedConsumer:
    """Forwards every call to the consumer and raises StateError on any thread but the one that adopted it.

    The client itself accepts calls of a second thread between two calls of the first. The threads would then undo each
    other's seeks, pauses and commits, so such a mistake must fail at once.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._owner: threading.Thread | None = None

    def adopt(self) -> None:
        """Make the current thread the owner."""
        self._owner = threading.current_thread()

    def __getattr__(self, name: str) -> Any:
        if threading.current_thread() is not self._owner:
            owner = "no thread yet" if self._owner is None else f"thread {self._owner.name!r}"
            raise StateError(
                f"Consumer.{name} was called on thread {threading.current_thread().name!r}, "
                f"but the consumer belongs to {owner}.",
                hint="Put a message into the fetcher's queue instead: Fetcher.ask(...).",
            )
        return getattr(self._consumer, name)
