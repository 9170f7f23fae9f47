"""Reads records of topics outside of any group: whole topics, ranges, and single offsets. It commits nothing."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from penstock.core.record import Record
from penstock.core.record import TopicPartition as Place
from penstock.kafka.clients import make_consumer
from penstock.kafka.cluster import Cluster
from penstock.kafka.failures import is_final, translate
from penstock.kafka.messages import to_record

_READ_LIMIT = 10_000
_WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.1

# Two offsets that are closer to each other than this are read in one go: that is quicker than another fetch.
_NEAR = 2_000
# Enough for the records around one offset; brokers send at least one batch of records, however large it is.
_SMALL_FETCHES = {"max.partition.fetch.bytes": 65_536, "queued.min.messages": 1}


def read_span(cluster: Cluster, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> Iterator[Record]:
    """Every record from each start up to, and without, its end; in the order in which the broker sends them."""
    if all(start >= ends[place] for place, start in starts.items()):
        return
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings=cluster.settings)
    try:
        yield from _read_span(consumer, cluster, starts, ends)
    finally:
        consumer.close()


def read_places(cluster: Cluster, wanted: Mapping[Place, Iterable[int]]) -> Iterator[Record]:
    """The records at exactly these offsets. Those that the log no longer has are left out.

    The consumer jumps from one to the next, and reads on where the next one is near.
    """
    settings = {**cluster.settings, **_SMALL_FETCHES}
    spans = {place: _spans(sorted(offsets)) for place, offsets in wanted.items()}
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings=settings)
    try:
        for jump in zip_longest(*spans.values()):
            parts = {place: offsets for place, offsets in zip(spans, jump, strict=True) if offsets}
            starts = {place: offsets[0] for place, offsets in parts.items()}
            ends = {place: offsets[-1] + 1 for place, offsets in parts.items()}
            for record in _read_span(consumer, cluster, starts, ends):
                if record.offset in parts[record.topic, record.partition]:
                    yield record
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


def _read_span(
    consumer: Consumer, cluster: Cluster, starts: Mapping[Place, int], ends: Mapping[Place, int]
) -> Iterator[Record]:
    left = {place: ends[place] for place, start in starts.items() if start < ends[place]}
    if not left:
        return
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


def _spans(offsets: list[int]) -> list[list[int]]:
    """Sorted offsets, with those that are near each other together."""
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and offset - spans[-1][-1] < _NEAR:
            spans[-1].append(offset)
        else:
            spans.append([offset])
    return spans
