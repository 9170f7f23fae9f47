"""A temporary consumer outside the group.

It fetches the retained partitions while ``on_revoke`` blocks the main one.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.error_codes import Code


class DrainFetcher:
    """Opens one consumer per drain. If that consumer fails, the main consumer fetches the records after the drain.

    The temporary consumer starts at the positions of the main consumer, which then lags behind. ``fetched_here`` has
    the partitions for which this is so: the main consumer returns some of their records again, and the caller drops
    those.
    """

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._client: Any = None
        self._tps: set[TopicPartition] = set()
        self._failed = False
        self.fetched_here: set[TopicPartition] = set()

    def fetch(self, positions: Mapping[TopicPartition, int], room: int) -> list[Message]:
        """Return records and ends of these partitions. The first call of a drain starts at ``positions``."""
        if self._tps != positions.keys():  # a second drain can follow without a poll in between
            self.end()
            self._tps = {*positions}
        if self._failed or not positions or room <= 0:
            return []
        try:
            if self._client is None:
                self._client = self._make_client()
                self._client.assign([KafkaTopicPartition(*tp, offset) for tp, offset in positions.items()])
            messages: list[Message] = self._client.consume(room, 0)
        except (KafkaException, PenstockError):
            self._failed = True
            return []
        good = []
        for message in messages:
            error = message.error()
            if error is not None and error.code() != Code.LOCAL_PARTITION_EOF:
                # The main consumer runs into the same error later and reports it.
                self._failed = True
                break
            good.append(message)
        self.fetched_here.update((message.topic() or "", message.partition() or 0) for message in good)
        return good

    def end(self) -> None:
        """Close the consumer: the drain is over."""
        client, self._client, self._tps, self._failed = self._client, None, set(), False
        if client is not None:
            with suppress(KafkaException, RuntimeError):
                client.close()
