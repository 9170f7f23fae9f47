"""Reads the existing and the new records of a topic, without a group."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.filters.expression import Expression
from penstock.core.records.record import Record, TopicPartition
from penstock.core.text.plurals import counted
from penstock.errors import TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Bounds, Found, Logs
from penstock.kafka.client.message_records import to_record
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import is_final, translate
from penstock.kafka.read.read_records import read_span, reader
from penstock.ops.dead_letters import record_values
from penstock.ops.topic_facts import require_bounds

_POLL_SECONDS = 0.2
_BATCH = 500

ReadSpan = Callable[[Mapping[TopicPartition, int], Mapping[TopicPartition, int]], Iterable[Record]]
"""Reads the records of each partition from its start up to its end (exclusive)."""


@dataclass(frozen=True)
class RecordFilter:
    """A filter of records; all given conditions must match. A header with the value None only has to exist."""

    key: bytes | None = None
    headers: Mapping[str, bytes | None] = field(default_factory=dict)
    where: Expression | None = None
    values: Callable[[Record], Mapping[str, Any]] = record_values
    """Makes the names that ``where`` can use."""

    def fits(self, record: Record) -> bool:
        there = dict(record.headers) if self.headers else {}
        return (
            (self.key is None or record.key == self.key)
            and all(name in there and (value is None or there[name] == value) for name, value in self.headers.items())
            and (self.where is None or self.where.matches(self.values(record)))
        )


@dataclass(frozen=True)
class Start:
    """Where to start: at one of the others, if given, else with the ``last`` records."""

    last: int = 10
    offset: int | None = None
    since: float | None = None
    beginning: bool = False


class Tail:
    """Reads a topic, or some of its partitions."""

    def __init__(self, cluster: Cluster, topic: str, partitions: Collection[int] = ()) -> None:
        self._cluster = cluster
        self._topic = topic
        tps = cluster.topic_partitions([topic])
        for number in partitions:
            if (topic, number) not in tps:
                raise TopicError(
                    f"Topic {topic!r} has no partition {number}.",
                    hint=f"It has {counted(len(tps), 'partition')}, numbered from 0.",
                )
        self._bounds = require_bounds(cluster, (tp for tp in tps if not partitions or tp[1] in partitions))

    def present(self, start: Start) -> Iterator[Record]:
        """Read the records that exist now."""
        if start.offset is not None or start.since is not None or start.beginning:
            ends = {tp: each.end for tp, each in self._bounds.items()}
            yield from read_span(self._cluster, self._starts(start), ends)
        elif start.last:
            found = last_records(self._bounds, start.last, read=partial(read_span, self._cluster))
            found.sort(key=lambda record: (record.timestamp_ms, record.partition, record.offset))
            yield from found[-start.last :]

    def to_come(self, stop: threading.Event) -> Iterator[Record]:
        """Read new records until ``stop`` is set. Not ``read_to_end``: it continues after the end."""
        with reader(self._cluster) as consumer:
            consumer.assign([KafkaTopicPartition(*tp, each.end) for tp, each in self._bounds.items()])
            while not stop.is_set():
                for message in consumer.consume(_BATCH, _POLL_SECONDS):
                    error = message.error()
                    if error is None:
                        yield to_record(message)
                    elif error.code() != Code.LOCAL_PARTITION_EOF and is_final(error):
                        doing = f"reading topic {self._topic}"
                        raise translate(KafkaException(error), doing=doing, brokers=self._cluster.brokers)

    def _starts(self, start: Start) -> dict[TopicPartition, int]:
        if start.beginning:
            return {tp: each.start for tp, each in self._bounds.items()}
        if start.offset is not None:
            return {tp: max(each.start, min(each.end, start.offset)) for tp, each in self._bounds.items()}
        since = start.since or 0.0
        found = Logs(self._cluster).at_times((tp, since) for tp in self._bounds)
        return {
            tp: answer.offset if isinstance(answer, Found) and answer.offset is not None else each.end
            for tp, each in self._bounds.items()
            for answer in [found[tp, since]]
        }


def last_records(bounds: Mapping[TopicPartition, Bounds], count: int, *, read: ReadSpan) -> list[Record]:
    """Return at least the last ``count`` records of each partition, or all if it has fewer.

    Transaction markers, and compacted and aborted records, have offsets too, so the last ``count`` offsets may hold
    fewer records. Then twice as many offsets before them are read, and so on.
    """
    found: dict[TopicPartition, list[Record]] = {tp: [] for tp in bounds}
    ends = {tp: each.end for tp, each in bounds.items()}
    width = count
    while ends:
        starts = {tp: max(bounds[tp].start, end - width) for tp, end in ends.items()}
        for record in read(starts, ends):
            found[record.topic, record.partition].append(record)
        ends = {tp: start for tp, start in starts.items() if start > bounds[tp].start and len(found[tp]) < count}
        width *= 2
    return [record for records in found.values() for record in records]
