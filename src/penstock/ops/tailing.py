"""Reading a topic as it is and as it grows, outside of any group."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.core.expression import Expression
from penstock.core.record import Record
from penstock.core.record import TopicPartition as Place
from penstock.errors import PenstockError, TopicError
from penstock.kafka.cluster import Cluster
from penstock.kafka.failures import is_final, translate
from penstock.kafka.logs import Bounds, Found, Logs
from penstock.kafka.messages import to_record
from penstock.kafka.peeking import reader
from penstock.kafka.reading import read_span
from penstock.ops.dead_letters import record_values

_POLL_SECONDS = 0.2
_BATCH = 500


@dataclass(frozen=True)
class Sieve:
    """Which records are wanted: all that fit everything given. A header without a value only has to be there."""

    key: bytes | None = None
    headers: Mapping[str, bytes | None] = field(default_factory=dict)
    where: Expression | None = None
    values: Callable[[Record], Mapping[str, Any]] = record_values
    """What ``where`` may look at."""

    def fits(self, record: Record) -> bool:
        there = dict(record.headers) if self.headers else {}
        return (
            (self.key is None or record.key == self.key)
            and all(name in there and (value is None or there[name] == value) for name, value in self.headers.items())
            and (self.where is None or self.where.matches(self.values(record)))
        )


@dataclass(frozen=True)
class Start:
    """Where to begin: one of these, or with the last records."""

    last: int = 10
    offset: int | None = None
    since: float | None = None
    beginning: bool = False


class Tail:
    """A topic, or some of its partitions."""

    def __init__(self, cluster: Cluster, topic: str, partitions: Collection[int] = ()) -> None:
        self._cluster = cluster
        self._topic = topic
        places = cluster.places([topic])
        for number in partitions:
            if (topic, number) not in places:
                raise TopicError(f"Topic {topic!r} has no partition {number}.", hint=f"It has {len(places)}.")
        self._bounds: dict[Place, Bounds] = {}
        for place, each in Logs(cluster).bounds(places).items():
            if partitions and place[1] not in partitions:
                continue
            if isinstance(each, PenstockError):
                raise each
            self._bounds[place] = each

    def present(self, start: Start) -> Iterator[Record]:
        """What is there now, from the start on."""
        ends = {place: each.end for place, each in self._bounds.items()}
        whole = start.offset is not None or start.since is not None or start.beginning
        records = read_span(self._cluster, self._starts(start), ends)
        if whole:
            yield from records
            return
        found = sorted(records, key=lambda record: (record.timestamp_ms, record.partition, record.offset))
        yield from found[-start.last :] if start.last else ()

    def to_come(self, stop: threading.Event) -> Iterator[Record]:
        """What comes after that, until stopped."""
        with reader(self._cluster) as consumer:
            consumer.assign([TopicPartition(*place, each.end) for place, each in self._bounds.items()])
            while not stop.is_set():
                for message in consumer.consume(_BATCH, _POLL_SECONDS):
                    error = message.error()
                    if error is None:
                        yield to_record(message)
                    elif error.code() != KafkaError._PARTITION_EOF and is_final(error):  # noqa: SLF001 - its public name
                        doing = f"reading topic {self._topic}"
                        raise translate(KafkaException(error), doing=doing, brokers=self._cluster.brokers)

    def _starts(self, start: Start) -> dict[Place, int]:
        if start.beginning:
            return {place: each.start for place, each in self._bounds.items()}
        if start.offset is not None:
            return {place: max(each.start, min(each.end, start.offset)) for place, each in self._bounds.items()}
        if start.since is not None:
            found = Logs(self._cluster).at_times((place, start.since) for place in self._bounds)
            return {
                place: answer.offset if isinstance(answer, Found) and answer.offset is not None else each.end
                for place, each in self._bounds.items()
                for answer in [found[place, start.since]]
            }
        return {place: max(each.start, each.end - start.last) for place, each in self._bounds.items()}
