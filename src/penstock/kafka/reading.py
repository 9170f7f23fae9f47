"""Reading a topic from its start to its present end, outside of any group's progress."""

from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from penstock.core.record import Record
from penstock.core.record import TopicPartition as Place
from penstock.kafka.clients import make_consumer
from penstock.kafka.cluster import Cluster
from penstock.kafka.failures import is_final, translate
from penstock.kafka.messages import to_record

_READ_LIMIT = 10_000
_WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.1


def read_span(cluster: Cluster, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> Iterator[Record]:
    """Every record from each start up to, and without, its end; in the order in which the broker sends them."""
    left = {place: ends[place] for place, start in starts.items() if start < ends[place]}
    if not left:
        return
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings=cluster.settings)
    try:
        consumer.assign([TopicPartition(*place, starts[place]) for place in left])
        while left:
            for message in consumer.consume(_READ_LIMIT, _POLL_SECONDS):
                place = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if place not in left:
                    continue
                if error is None:
                    record = to_record(message)
                    if record.offset < left[place]:
                        yield record
                    if record.offset + 1 >= left[place]:
                        del left[place]
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's own code
                    del left[place]
                elif is_final(error):
                    raise translate(KafkaException(error), doing=f"reading topic {place[0]}", brokers=cluster.brokers)
    finally:
        consumer.close()


def read_topic(brokers: str, topic: str, *, settings: Mapping[str, Any] | None = None) -> Iterator[Record]:
    """Every record that is in the topic now, partition by partition in order; nothing is committed."""
    partitions = Cluster(brokers, settings).require_topics([topic])[topic]
    consumer = make_consumer(brokers, "penstock-reader", settings=settings or {})
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            for message in consumer.consume(_READ_LIMIT, _WAIT_SECONDS):
                error = message.error()
                if error is None:
                    yield to_record(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's own code
                    ended.add(message.partition() or 0)
                else:
                    raise translate(KafkaException(error), doing=f"reading topic {topic}", brokers=brokers)
    finally:
        consumer.close()
