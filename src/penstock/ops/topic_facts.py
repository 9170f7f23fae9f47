"""Facts about topics: size, rate, skew, and when retention deletes records; and adding partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, NewPartitions, ResourceType

from penstock.core.records.record import TopicPartition
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.admin.answers import ANSWER_SECONDS, answer
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Bounds, Found, Logs
from penstock.kafka.admin.log_dirs import partition_bytes
from penstock.kafka.errors import translate
from penstock.kafka.read.consumer_offsets import times_at

_RATE_SECONDS = 60.0
_FOR_EVER = -1


@dataclass(frozen=True)
class PartitionFacts:
    """``oldest`` is the timestamp of the first record. ``error`` says why other fields are unknown."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None = None
    end: int | None = None
    rate: float | None = None
    oldest: float | None = None
    bytes: int | None = None
    error: str = ""

    @property
    def max_records(self) -> int | None:
        """The number of offsets. It is an upper bound: transaction markers and compacted records have offsets too."""
        return None if self.start is None or self.end is None else self.end - self.start


@dataclass(frozen=True)
class TopicFacts:
    name: str
    partitions: tuple[PartitionFacts, ...]
    retention_seconds: float | None = None
    cleanup: str = ""

    @property
    def max_records(self) -> int:
        return sum(each.max_records or 0 for each in self.partitions)

    @property
    def bytes(self) -> int | None:
        """The size of one replica on disk; None if unknown."""
        known = [each.bytes for each in self.partitions if each.bytes is not None]
        return sum(known) if known else None

    @property
    def rate(self) -> float | None:
        known = [each.rate for each in self.partitions if each.rate is not None]
        return sum(known) if known else None

    @property
    def replication(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=0)

    @property
    def skew(self) -> float | None:
        """The largest partition divided by the mean; 1 is even."""
        counts = [each.max_records for each in self.partitions if each.max_records is not None]
        return max(counts) / fmean(counts) if counts and sum(counts) else None

    def margin(self, now: float) -> float | None:
        """Seconds until retention may delete the oldest record; None if retention does not delete by time."""
        oldest = [each.oldest for each in self.partitions if each.oldest is not None]
        if self.retention_seconds is None or "delete" not in self.cleanup or not oldest:
            return None
        return max(0.0, min(oldest) + self.retention_seconds - now)


def require_bounds(cluster: Cluster, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
    """Return the start and end of each log. Raise if a partition does not answer."""
    found = {}
    for tp, each in Logs(cluster).bounds(tps).items():
        if isinstance(each, PenstockError):
            raise each
        found[tp] = each
    return found


def topic_facts(cluster: Cluster, names: Iterable[str], *, now: float, ages: bool = False) -> list[TopicFacts]:
    """With ``ages``, also read the first record of every partition."""
    names = list(names)
    found = _metadata(cluster)
    tps = [(name, number) for name in names for number in found[name].partitions]
    logs = Logs(cluster)
    bounds = logs.bounds(tps)
    before = logs.at_times((tp, now - _RATE_SECONDS) for tp, each in bounds.items() if isinstance(each, Bounds))
    filled = [(*tp, each.start) for tp, each in bounds.items() if isinstance(each, Bounds) and each.end > each.start]
    oldest = times_at(cluster, filled) if ages else {}
    configs, sizes = _configs(cluster, names), partition_bytes(cluster, names)
    return [
        TopicFacts(
            name,
            tuple(
                replace(
                    _partition(
                        name, part, bounds[name, number], before.get(((name, number), now - _RATE_SECONDS)), oldest
                    ),
                    bytes=sizes.get((name, number)),
                )
                for number, part in sorted(found[name].partitions.items())
            ),
            _seconds(configs[name].get("retention.ms")),
            configs[name].get("cleanup.policy", ""),
        )
        for name in names
    ]


def _metadata(cluster: Cluster) -> Mapping[str, Any]:
    try:
        topics: Mapping[str, Any] = cluster.admin.list_topics(timeout=ANSWER_SECONDS).topics
    except KafkaException as error:
        raise translate(error, doing="listing topics", brokers=cluster.brokers, settings=cluster.settings) from error
    return topics


def _configs(cluster: Cluster, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings of each topic; none if the broker does not answer."""
    resources = {ConfigResource(ResourceType.TOPIC, name): name for name in names}
    found: dict[str, dict[str, str]] = {name: {} for name in resources.values()}
    if not resources:
        return found
    for resource, future in cluster.admin.describe_configs(list(resources), request_timeout=ANSWER_SECONDS).items():
        try:
            entries = answer(future)
        except KafkaException:
            continue
        found[resources[resource]] = {name: entry.value or "" for name, entry in entries.items()}
    return found


def _partition(
    topic: str, part: Any, bounds: Bounds | PenstockError, before: object, oldest: Mapping[tuple[str, int, int], float]
) -> PartitionFacts:
    known = PartitionFacts(part.id, part.leader, tuple(part.replicas), tuple(part.isrs))
    if isinstance(bounds, PenstockError):
        return replace(known, error=bounds.problem)
    rate = None
    if isinstance(before, Found):
        rate = (bounds.end - (bounds.end if before.offset is None else before.offset)) / _RATE_SECONDS
    first = oldest.get((topic, part.id, bounds.start))
    return replace(known, start=bounds.start, end=bounds.end, rate=rate, oldest=first)


def _seconds(milliseconds: str | None) -> float | None:
    if milliseconds is None or not milliseconds.lstrip("-").isdecimal() or int(milliseconds) == _FOR_EVER:
        return None
    return int(milliseconds) / 1000


def require_fewer(cluster: Cluster, topic: str, partitions: int) -> int:
    """Return the number of partitions. Raise if it is not smaller than ``partitions``."""
    had = cluster.require_topics([topic])[topic]
    if partitions <= had:
        raise ConfigError(
            f"Topic {topic!r} already has {counted(had, 'partition')}.",
            hint=f"Kafka can add partitions but not remove them. Use more than {had}.",
        )
    return had


def grow(cluster: Cluster, topic: str, partitions: int) -> None:
    """Set the number of partitions, which adds the missing ones."""
    future = cluster.admin.create_partitions([NewPartitions(topic, partitions)], request_timeout=ANSWER_SECONDS)[topic]
    try:
        answer(future)
    except KafkaException as error:
        doing = f"adding partitions to topic {topic}"
        raise translate(error, doing=doing, brokers=cluster.brokers, settings=cluster.settings) from error
