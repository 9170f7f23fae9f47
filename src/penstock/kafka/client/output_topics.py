"""What a transactional producer must know of the topics that it writes to: their size limits and their partitions.

A record that the broker refuses fails its whole transaction. So a record that it may refuse is checked before.
"""

from collections.abc import Callable, Iterable, Mapping
from math import inf

from confluent_kafka import KafkaError

from penstock.core.failures.outcome import ProducerRecord
from penstock.kafka.client.refused_output import unknown_partition
from penstock.kafka.client.transactions import size_of

# Smaller than the limit that any topic is likely to have.
_SURELY_SMALL_BYTES = 500


class TopicFacts:
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
        limits = self._limits
        limit = _SURELY_SMALL_BYTES if limits is None else limits.get(out.topic, inf)
        return size_of(out) > limit

    def limits(self) -> Mapping[str, int]:
        """Return the largest batch that each topic takes; topics whose settings cannot be read are left out."""
        if self._limits is None:
            self._limits = self._read_limits(self._topics)
        return self._limits

    def is_large(self, out: ProducerRecord) -> bool:
        """Whether the record may be larger than its topic allows."""
        return size_of(out) > self.limits().get(out.topic, inf)

    def refusal(self, out: ProducerRecord) -> KafkaError | None:
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
