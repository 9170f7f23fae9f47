"""The Kafka consumer, for one thread alone."""

import threading
from typing import Any

from confluent_kafka import Consumer

from penstock.errors import StateError


class OwnedConsumer:
    """Passes everything on to the consumer, as long as the thread that adopted it asks.

    The client itself would let a second thread in once the first one's call returns, and the two would then undo each
    other's seeks, pauses and commits. So a mistake shows at once.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._owner: threading.Thread | None = None

    def adopt(self) -> None:
        """From now on the consumer is this thread's."""
        self._owner = threading.current_thread()

    def __getattr__(self, name: str) -> Any:
        if threading.current_thread() is not self._owner:
            owner = "nobody yet" if self._owner is None else f"thread {self._owner.name!r}"
            raise StateError(
                f"Consumer.{name} was called on thread {threading.current_thread().name!r}, "
                f"but the consumer belongs to {owner}.",
                hint="Put a message into the fetcher's queue instead: Fetcher.ask(...).",
            )
        return getattr(self._consumer, name)
