"""Reads and writes the offsets of one group, with a consumer that never joins it.

The admin client has calls for both, but it crashes the process if the group's coordinator has just moved: it passes
that error to a consumer that it does not have (librdkafka #5040).
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition
from penstock.kafka.client.clients import make_consumer
from penstock.kafka.error_codes import Code

# The client waits this long for an answer that was lost with its connection.
_CLIENT = {"socket.timeout.ms": 5_000}
_POLL_SECONDS = 0.005


class CommittedOffsets:
    """Raises KafkaException. With ``stable``, reads wait for open transactions that may change the offsets."""

    def __init__(self, brokers: str, group: str, *, settings: Mapping[str, Any], stable: bool = False) -> None:
        level = "read_committed" if stable else "read_uncommitted"
        answers: list[tuple[KafkaError | None, Sequence[KafkaTopicPartition]]] = []
        self._answers = answers
        # The callback must not refer to ``self``: the client would be part of a cycle, and keep its threads and
        # connections until Python's garbage collector finds the cycle, which may be never.
        self._consumer = make_consumer(
            brokers,
            group,
            settings={**settings, **_CLIENT, "isolation.level": level},
            on_commit=lambda error, partitions: answers.append((error, partitions)),
        )

    def read(self, tps: Iterable[TopicPartition], *, seconds: float) -> dict[TopicPartition, KafkaTopicPartition]:
        asked = [KafkaTopicPartition(*tp) for tp in tps]
        self._consumer.poll(0)  # serves the client's queue of connection events, which would grow otherwise
        found = self._consumer.committed(asked, timeout=seconds) if asked else []
        return {(each.topic, each.partition): each for each in found}

    def write(self, commits: Mapping[TopicPartition, tuple[int, str]], *, seconds: float) -> None:
        """Commit each offset with its metadata; the broker refuses if the group has members."""
        wanted = [KafkaTopicPartition(*tp, offset, metadata=text) for tp, (offset, text) in commits.items()]
        self._answers.clear()
        # In the background, because a synchronous commit has no time limit.
        self._consumer.commit(offsets=wanted, asynchronous=True)
        deadline = time.monotonic() + seconds
        while not self._answers and time.monotonic() < deadline:
            self._consumer.poll(_POLL_SECONDS)
        if not self._answers:
            raise KafkaException(KafkaError(Code.LOCAL_TIMED_OUT))
        error, partitions = self._answers[0]
        refused = error or next((each.error for each in partitions if each.error is not None), None)
        if refused is not None:
            raise KafkaException(refused)

    def close(self) -> None:
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()
