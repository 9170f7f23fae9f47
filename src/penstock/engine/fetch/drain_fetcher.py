"""Who fetches the partitions that stay, while a drain holds up the member's own client inside of its callback."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError


class DrainFetcher:
    """A client that is no member, for the time of one drain; where it fails, the member's own has lost nothing.

    It reads on from where that one has got to, which is then behind: ``overtaken`` says of which partitions, and what
    comes of those again is to be passed over.
    """

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._client: Any = None
        self._tps: set[TopicPartition] = set()
        self._failed = False
        self.overtaken: set[TopicPartition] = set()

    def fetch(self, positions: Mapping[TopicPartition, int], room: int) -> list[Message]:
        """Records and ends of these partitions, from there on when it is first called in a drain."""
        if self._tps != positions.keys():  # one drain may follow another without a poll in between
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
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                # Told to whom it concerns by the member's own client, when that gets there.
                self._failed = True
                break
            good.append(message)
        self.overtaken.update((message.topic() or "", message.partition() or 0) for message in good)
        return good

    def end(self) -> None:
        """The drain is over."""
        client, self._client, self._tps, self._failed = self._client, None, set(), False
        if client is not None:
            with suppress(KafkaException, RuntimeError):
                client.close()
