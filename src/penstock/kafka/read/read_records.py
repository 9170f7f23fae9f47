"""Reads records outside any group: to the end of partitions, ranges, and single offsets. It commits nothing."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil, inf
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import Record, TopicPartition
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.client.clients import make_consumer
from penstock.kafka.client.message_records import to_record, tp_of
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import is_final, translate

_READ_LIMIT = 10_000
_POLL_SECONDS = 0.1

# Offsets closer to each other than this are read as one range: one small fetch returns about as many records.
_NEAR = 500
_READERS = 4
_SPANS_AT_LEAST = 5
_SMALL_FETCHES = {
    # Enough for the records around one offset. Brokers send at least one record batch, however large it is.
    "max.partition.fetch.bytes": 65_536,
    "queued.min.messages": 1,
    # After a seek, the client's buffer still counts as full for this time.
    "fetch.queue.backoff.ms": 1,
    # A fetch at the end of a log delays the next seek by this time.
    "fetch.wait.max.ms": 10,
}


@contextmanager
def reader(cluster: Cluster, **settings: object) -> Iterator[Consumer]:
    """Open a consumer that joins no group and commits nothing."""
    consumer = make_consumer(cluster.brokers, "penstock-reader", settings=cluster.settings, member=settings)
    try:
        yield consumer
    finally:
        consumer.close()


def read_to_end(
    cluster: Cluster,
    starts: Mapping[TopicPartition, int],
    *,
    doing: str,
    seconds: float = inf,
    member: Mapping[str, object] | None = None,
    is_error: Callable[[KafkaError], bool] = is_final,
) -> Iterator[Message]:
    """Yield every message from each start to the end that its partition has when the reader gets there.

    Raise TimeoutError if that takes longer than ``seconds``: a part of a log must not look like the whole. ``member``
    has further settings of the consumer. An error for which ``is_error`` is true is raised; the client retries after
    others.
    """
    if not starts:
        return
    deadline = time.monotonic() + seconds
    with reader(cluster, **(member or {})) as consumer:
        consumer.assign([KafkaTopicPartition(*tp, offset) for tp, offset in starts.items()])
        left = set(starts)
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError
            for message in consumer.consume(_READ_LIMIT, _POLL_SECONDS):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == Code.LOCAL_PARTITION_EOF:
                    left.discard(tp_of(message))
                elif is_error(error):
                    raise translate(KafkaException(error), doing=doing, brokers=cluster.brokers)


def read_span(
    cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Iterator[Record]:
    """Yield every record from each start up to its end, which is excluded, in the order in which brokers send them."""
    if all(start >= ends[tp] for tp, start in starts.items()):
        return
    with reader(cluster) as consumer:
        yield from _read_span(consumer, cluster, starts, ends)


def read_positions(cluster: Cluster, wanted: Mapping[TopicPartition, Iterable[int]]) -> Iterator[Record]:
    """Yield the records at exactly these offsets; offsets that the log no longer has are left out.

    A few consumers share the work. Each seeks to one offset after the other, and reads ranges of near offsets. It reads
    one partition at a time: with several, it would keep fetching partitions that it has finished.
    """
    chosen = {tp: set(offsets) for tp, offsets in wanted.items()}
    spans = [(tp, *span) for tp, offsets in chosen.items() for span in _spans(sorted(offsets))]
    shares = [spans[at : at + size] for size in [_share(len(spans))] for at in range(0, len(spans), size)]
    with ThreadPoolExecutor(max_workers=_READERS) as pool:
        for records in pool.map(lambda share: _read_spans(cluster, share), shares):
            yield from (record for record in records if record.offset in chosen[record.topic, record.partition])


def _share(spans: int) -> int:
    """Return how many spans one consumer reads: for a few spans, another connection costs more time than it saves."""
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
    """Yield every record of the topic, in order within each partition; nothing is committed."""
    cluster = Cluster(brokers, settings)
    starts = dict.fromkeys(cluster.topic_partitions([topic]), OFFSET_BEGINNING)
    # Every error is raised: without a time limit, waiting for the client's retries could take forever.
    messages = read_to_end(cluster, starts, doing=f"reading topic {topic}", is_error=lambda _: True)
    yield from map(to_record, messages)


def _read_span(
    consumer: Consumer, cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Iterator[Record]:
    # Not read_to_end: it stops at given offsets, and asks for exactly as many records as are missing.
    left = {tp: ends[tp] for tp, start in starts.items() if start < ends[tp]}
    if not left:
        return
    consumer.assign([KafkaTopicPartition(*tp, starts[tp]) for tp in left])
    reached = dict(starts)
    while left:
        # consume() waits until it has as many records as it is asked for, or until the timeout.
        missing = sum(end - reached[tp] for tp, end in left.items())
        for message in consumer.consume(min(missing, _READ_LIMIT), _POLL_SECONDS):
            tp = tp_of(message)
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
    """Return the first and the last offset of each range of near offsets."""
    spans: list[tuple[int, int]] = []
    for offset in offsets:
        if spans and offset - spans[-1][1] < _NEAR:
            spans[-1] = (spans[-1][0], offset)
        else:
            spans.append((offset, offset))
    return spans
