"""First and last offsets of partitions, and offsets by time, many at a time.

An error of one partition does not affect the others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import OffsetSpec

from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.answers import answer
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.errors import translate

# The client waits this long for a partition without a leader.
_ANSWER_SECONDS = 5.0

_Futures = dict[KafkaTopicPartition, "Future[Any]"]

Moment = tuple[TopicPartition, float]
"""A partition, and a time in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first offset of the log, and the offset of the next record."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """An offset and the time of its record in milliseconds; both are None if there is no such record."""

    offset: int | None
    timestamp_ms: int | None


class Logs:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def bounds(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds | PenstockError]:
        asked = list(dict.fromkeys(tps))
        ends = self._ask(dict.fromkeys(asked, OffsetSpec.latest()))
        alive = [tp for tp, end in ends.items() if isinstance(end, Found)]
        starts = self._ask(dict.fromkeys(alive, OffsetSpec.earliest()))
        return {tp: _bounds(starts.get(tp, end), end) for tp, end in ends.items()}

    def at_times(self, moments: Iterable[Moment]) -> dict[Moment, Found | PenstockError]:
        """Return the first record at or after each time, in seconds since 1970."""
        rounds: list[dict[TopicPartition, float]] = []
        depth: Counter[TopicPartition] = Counter()
        for tp, moment in dict.fromkeys(moments):
            if depth[tp] == len(rounds):
                rounds.append({})
            rounds[depth[tp]][tp] = moment
            depth[tp] += 1
        # One call accepts a partition only once, but the calls can run at the same time.
        asked = [self._send({tp: _since(moment) for tp, moment in each.items()}) for each in rounds]
        return {
            (tp, each[tp]): answer
            for each, futures in zip(rounds, asked, strict=True)
            for tp, answer in self._receive(futures).items()
        }

    def newest(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Found | PenstockError]:
        """Return the record with the latest time of each partition."""
        return self._ask(dict.fromkeys(tps, OffsetSpec.max_timestamp()))

    def _ask(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, Found | PenstockError]:
        return self._receive(self._send(specs))

    def _send(self, specs: Mapping[TopicPartition, OffsetSpec]) -> _Futures:
        asked = {KafkaTopicPartition(*tp): spec for tp, spec in specs.items()}
        return self._cluster.admin.list_offsets(asked, request_timeout=_ANSWER_SECONDS) if asked else {}

    def _receive(self, futures: _Futures) -> dict[TopicPartition, Found | PenstockError]:
        answers: dict[TopicPartition, Found | PenstockError] = {}
        for each, future in futures.items():
            tp = (each.topic, each.partition)
            try:
                answers[tp] = _found(answer(future))
            except KafkaException as error:
                doing = f"reading offsets of {each.topic}-{each.partition}"
                answers[tp] = translate(
                    error, doing=doing, brokers=self._cluster.brokers, settings=self._cluster.settings
                )
        return answers


def _since(moment: float) -> OffsetSpec:
    spec: OffsetSpec = OffsetSpec.for_timestamp(max(0, int(moment * 1000)))
    return spec


def _found(answer: Any) -> Found:
    return Found(
        answer.offset if answer.offset >= 0 else None, answer.timestamp if (answer.timestamp or -1) >= 0 else None
    )


def _bounds(start: Found | PenstockError, end: Found | PenstockError) -> Bounds | PenstockError:
    if isinstance(end, PenstockError):
        return end
    if isinstance(start, PenstockError):
        return start
    return Bounds(start.offset or 0, end.offset or 0)
