"""What a transactional producer must know of the topics that it writes to: their size limits and their partitions.

A record that the broker refuses fails its whole transaction. So a record that it may refuse is checked before.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from math import inf

from confluent_kafka import KafkaError

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.scheduling.effects import Send
from penstock.kafka.client.refused_output import forms_of, unknown_partition
from penstock.kafka.client.transactions import BATCH_BYTES, size_of

# Smaller than the limit that any topic is likely to have.
_SURELY_SMALL_BYTES = 500
# By default, brokers refuse timestamps that are more than an hour ahead; their clocks may differ from ours.
_AHEAD_SECONDS = 3_000


class OutputTopicFacts:
    """``topics`` are those that the handler declares. Outputs may name others, which are looked up at their first use.

    ``may_refuse`` asks nobody, and any thread may call it. The other methods ask the cluster if they need to; one
    thread calls them.

    Args:
        topics: The declared topics.
        read_limits: Returns the largest batch that each topic takes, if the login may read it.
        count_partitions: Returns how many partitions each topic has, or raises a TopicError for one that is missing.
    """

    def __init__(
        self,
        topics: Iterable[str],
        *,
        read_limits: Callable[[Iterable[str]], Mapping[str, int]],
        count_partitions: Callable[[Iterable[str]], Mapping[str, int]],
    ) -> None:
        self._topics = {*topics}
        self._read_limits = read_limits
        self._count_partitions = count_partitions
        self._limits: Mapping[str, int] | None = None
        self._partitions: Mapping[str, int] = {}

    def may_refuse(self, out: ProducerRecord) -> bool:
        """Whether the broker may refuse this record, as far as is known here."""
        if out.topic not in self._topics or out.partition >= self._partitions.get(out.topic, 0):
            return True
        return size_of(out) > self._known_limit(out.topic) or _is_ahead(out)

    def room(self, topic: str) -> float:
        """Return how many bytes key and value may have together so that no broker refuses the record; 0 if unknown.

        That holds for records without headers, partition and timestamp. It saves asking ``may_refuse`` for each.
        """
        return max(0.0, self._known_limit(topic) - BATCH_BYTES) if topic in self._topics else 0.0

    def _known_limit(self, topic: str) -> float:
        return _SURELY_SMALL_BYTES if self._limits is None else self._limits.get(topic, inf)

    def limits(self) -> Mapping[str, int]:
        """Return the largest batch that each topic takes; topics whose settings cannot be read are left out."""
        if self._limits is None:
            self._limits = self._read_limits(self._topics)
        return self._limits

    def accepted_form(
        self, send: Send, try_out: Callable[[ProducerRecord], KafkaError | None]
    ) -> ProducerRecord | KafkaError:
        """Return the first form of this record that the broker takes, or why it refuses all of them.

        ``try_out`` asks the broker. Raises a TopicError if the topic is missing.
        """
        refused = self._refusal(send.outgoing)
        if refused is not None:
            return refused
        errors = []
        for out in forms_of(send):
            is_doubtful = size_of(out) > self.limits().get(out.topic, inf) or _is_ahead(out)
            error = try_out(out) if is_doubtful else None
            if error is None:
                return out
            errors.append(error)
        return errors[0]

    def _refusal(self, out: ProducerRecord) -> KafkaError | None:
        """Return why no broker can take this record: its partition does not exist. Raises if its topic is missing."""
        if out.topic in self._topics and out.partition < self._partitions.get(out.topic, 0):
            return None
        found = self._count_partitions([out.topic])
        self._partitions = {**self._partitions, **found}
        if out.topic not in self._topics:
            # New objects, because another thread may read the old ones.
            self._topics = {*self._topics, out.topic}
            self._limits = None
        return None if out.partition < found[out.topic] else unknown_partition(out, found[out.topic])

    def forget(self) -> None:
        """Ask again for limits and partitions, as they may have changed."""
        self._limits = None
        self._partitions = {}


def _is_ahead(out: ProducerRecord) -> bool:
    """Whether its timestamp is so late that the broker may refuse it."""
    return out.timestamp_ms > 0 and out.timestamp_ms / 1000 > time.time() + _AHEAD_SECONDS
