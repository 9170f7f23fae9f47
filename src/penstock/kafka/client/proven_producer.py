"""A producer client whose delivery reports are true.

librdkafka also reports a record as delivered when a later batch of its partition succeeds: brokers enforce the sequence
of batches, so the earlier batch must have been written. But a broker that has no state of the producer accepts any
sequence. While a partition gets its leader (a new topic, an election), the broker may refuse a producer's first batch
and accept the second. librdkafka then reports the first batch as delivered, although no broker has it. Such a report
has no offset.
"""

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

OnDelivery = Callable[[KafkaError | None, Message], None]


def is_proven(message: Message) -> bool:
    """Whether this report without an error proves that a broker has the record: only then it has an offset."""
    return message.offset() is not None


class ProvenProducer(Producer):
    """Sends a record again if its delivery report proves nothing; callbacks get only reports that do.

    A record that is sent again may be written twice, or after records that were sent later.
    """

    def __init__(self, config: dict[str, Any], **options: Any) -> None:
        super().__init__(config, **options)
        self._again: deque[Callable[[], None]] = deque()

    def produce(  # type: ignore[override] # noqa: PLR0917 - the client's own, without its old name of on_delivery
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        again = partial(self.produce, topic, value, key, partition, on_delivery, timestamp, headers)
        report = partial(self._report, again, on_delivery)
        super().produce(topic, value, key, partition, report, timestamp=timestamp, headers=headers)

    def poll(self, timeout: float = -1) -> int:
        self._send_again()
        return super().poll(timeout)

    def flush(self, timeout: float = -1) -> int:
        deadline = inf if timeout < 0 else time.monotonic() + timeout
        while True:
            super().flush(-1 if deadline == inf else max(0.0, deadline - time.monotonic()))
            if not self._again or time.monotonic() >= deadline:
                return len(self)
            self._send_again()

    def __len__(self) -> int:
        return super().__len__() + len(self._again)

    def _report(
        self, again: Callable[[], None], on_delivery: OnDelivery | None, error: KafkaError | None, message: Message
    ) -> None:
        if error is None and not is_proven(message):
            self._again.append(again)
            self._send_again()
        elif on_delivery is not None:
            on_delivery(error, message)

    def _send_again(self) -> None:
        """Send what waits, until the client's buffer is full."""
        while self._again:
            try:
                # Taken first: several threads may poll, and only one of them may send a record.
                produce = self._again.popleft()
            except IndexError:
                return
            try:
                produce()
            except BufferError:
                self._again.appendleft(produce)
                return
