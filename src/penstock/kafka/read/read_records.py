"""Reads records of topics outside of any group: whole topics, ranges, and single offsets. It commits nothing."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import Record, TopicPartition
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import make_consumer
from penstock.kafka.client.message_records import to_record
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import is_final, translate

_READ_LIMIT = 10_000
_WAIT_SECONDS = 1.0
_POLL_SECONDS = 0.1

# Two offsets that are closer to each other than this are read in one go: one small fetch brings about as many records.
_NEAR = 500
_READERS = 4
_SPANS_AT_LEAST = 5
_SMALL_FETCHES = {
    # Enough for the records around one offset; brokers send at least one batch of records, however large it is.
    "max.partition.fetch.bytes": 65_536,
    "queued.min.messages": 1,
    # After each jump, the client's buffer still counts as full for this long.
    "fetch.queue.backoff.ms": 1,
    # A fetch at the end of a log holds up the next jump for this long.
    "fetch.wait.max.ms": 10,
}


def read_span(
    cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Iterator[Record]:
    """Every record from each start up to, and without, its end; in the order in which the broker sends them."""
    if all(start >= ends[tp] for tp, start in starts.items()):
        return
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings=cluster.settings)
    try:
        yield from _read_span(consumer, cluster, starts, ends)
    finally:
        consumer.close()


def read_places(cluster: Cluster, wanted: Mapping[TopicPartition, Iterable[int]]) -> Iterator[Record]:
    """The records at exactly these offsets. Those that the log no longer has are left out.

    A few consumers share the work. Each jumps from one offset to the next, and reads on where the next one is near. It
    reads one partition at a time: with several, it would fetch more and more of those that have arrived already.
    """
    chosen = {tp: set(offsets) for tp, offsets in wanted.items()}
    spans = [(tp, *span) for tp, offsets in chosen.items() for span in _spans(sorted(offsets))]
    shares = [spans[at : at + size] for size in [_share(len(spans))] for at in range(0, len(spans), size)]
    with ThreadPoolExecutor(max_workers=_READERS) as pool:
        for records in pool.map(lambda share: _read_spans(cluster, share), shares):
            yield from (record for record in records if record.offset in chosen[record.topic, record.partition])


def _share(spans: int) -> int:
    """How many spans one consumer reads: for a few, another connection takes longer than they do."""
    return max(_SPANS_AT_LEAST, ceil(spans / _READERS))


def _read_spans(cluster: Cluster, spans: Iterable[tuple[TopicPartition, int, int]]) -> list[Record]:
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings={**cluster.settings, **_SMALL_FETCHES})
    try:
        return [
            record for tp, first, last in spans for record in _read_span(consumer, cluster, {tp: first}, {tp: last + 1})
        ]
    finally:
        consumer.close()


def read_topic(brokers: str, topic: str, *, settings: Mapping[str, Any] | None = None) -> Iterator[Record]:
    """Every record that is in the topic now, partition by partition in order; nothing is committed."""
    partitions = Cluster(brokers, settings).require_topics([topic])[topic]
    consumer = make_consumer(brokers, "penstock-reader", settings=settings or {})
    try:
        consumer.assign([KafkaTopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            for message in consumer.consume(_READ_LIMIT, _WAIT_SECONDS):
                error = message.error()
                if error is None:
                    yield to_record(message)
                elif error.code() == Code.LOCAL_PARTITION_EOF:
                    ended.add(message.partition() or 0)
                else:
                    raise translate(KafkaException(error), doing=f"reading topic {topic}", brokers=brokers)
    finally:
        consumer.close()


def _read_span(
    consumer: Consumer, cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Iterator[Record]:
    left = {tp: ends[tp] for tp, start in starts.items() if start < ends[tp]}
    if not left:
        return
    consumer.assign([KafkaTopicPartition(*tp, starts[tp]) for tp in left])
    reached = dict(starts)
    while left:
        # The client waits until it has as many records as we ask for, or the time is over.
        missing = sum(end - reached[tp] for tp, end in left.items())
        for message in consumer.consume(min(missing, _READ_LIMIT), _POLL_SECONDS):
            tp = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if tp not in left:
                continue
            if error is None:
                record = to_record(message)
                reached[tp] = record.offset + 1
                if starts[tp] <= record.offset < left[tp]:
                    yield record
                if reached[tp] >= left[tp]:
                    del left[tp]
            elif error.code() == Code.LOCAL_PARTITION_EOF:
                del left[tp]
            elif is_final(error):
                raise translate(KafkaException(error), doing=f"reading topic {tp[0]}", brokers=cluster.brokers)


def _spans(offsets: list[int]) -> list[tuple[int, int]]:
    """The first and the last of those sorted offsets that are near each other."""
    spans: list[tuple[int, int]] = []
    for offset in offsets:
        if spans and offset - spans[-1][1] < _NEAR:
            spans[-1] = (spans[-1][0], offset)
        else:
            spans.append((offset, offset))
    return spans
