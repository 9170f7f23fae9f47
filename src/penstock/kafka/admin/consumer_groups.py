"""Lists, describes and deletes consumer groups, many at a time. An error of one group does not affect the others."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
)
from confluent_kafka.admin import ConfigResource, ConsumerGroupDescription, MemberDescription, ResourceType

from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.answers import ANSWER_SECONDS, answer
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import kafka_error, translate

SHARE = "Share"
"""The type of share groups, as Kafka's tools spell it."""

# How many requests are sent before the first answer is awaited.
_AT_ONCE = 500

T = TypeVar("T")
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class GroupListing:
    name: str
    type: str
    state: str


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """``target`` is the broker's target assignment with the consumer protocol; else the same as ``partitions``."""

    id: str
    client: str
    host: str
    static_id: str | None
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    rack: str | None = None
    """Known only for members of share groups: brokers do not return the rack of other members."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    name: str
    type: str
    state: str
    assignor: str
    coordinator: str
    members: tuple[DescribedMember, ...]
    simple: bool = False
    """No member has ever joined: its offsets were committed from outside, as pipelines on Spark do."""
    epoch: int | None = None
    assignment_epoch: int | None = None
    """Only of share groups: the group epoch, and the epoch of the last assignment."""

    @property
    def exists(self) -> bool:
        return self.state != "Dead"

    @property
    def is_shared(self) -> bool:
        return self.type == SHARE

    @property
    def is_active(self) -> bool:
        return self.exists and self.state != "Empty"


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group has committed for one partition; Penstock's metadata is an offset map.

    For a share group, the start offset of the partition, and the lag as the brokers count it.
    """

    offset: int
    metadata: str = ""
    lag: int | None = None


class Groups:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._admin = cluster.admin

    def of_consumers(self) -> list[GroupListing]:
        """Return every consumer group, sorted by name.

        Raise if a broker does not answer: its groups would be missing.
        """
        listed = self._result(self._admin.list_consumer_groups(request_timeout=ANSWER_SECONDS), "listing groups")
        for failure in listed.errors:
            raise self._translated(failure, "listing groups")
        found = [GroupListing(each.group_id, _word(each.type), _state(each)) for each in listed.valid]
        return sorted(found, key=lambda each: each.name)

    def others(self) -> list[GroupListing]:
        """Return the other groups: share groups, Connect, Streams. The client returns little more than their names."""
        with warnings.catch_warnings():
            # Only the deprecated call returns such groups.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                everything = self._admin.list_groups(timeout=ANSWER_SECONDS)
            except KafkaException as error:
                raise self._translated(error, "listing groups") from error
        consumers = {each.name for each in self.of_consumers()}
        found = [each for each in everything if each.id not in consumers]
        return sorted(
            (GroupListing(str(each.id), (each.protocol_type or "other").capitalize(), "") for each in found),
            key=lambda each: each.name,
        )

    def describe(self, names: Iterable[str]) -> dict[str, GroupDescription | PenstockError]:
        """Describe groups. A group that does not exist has the state Dead, as in Kafka."""
        found: dict[str, GroupDescription | PenstockError] = {}
        for batch in batches(names):
            futures = self._admin.describe_consumer_groups(list(batch), request_timeout=ANSWER_SECONDS)
            for name, future in futures.items():
                try:
                    found[name] = _description(self._result(future, f"describing group {name}", none=None), name)
                except PenstockError as error:
                    found[name] = error
        return found

    def session_seconds(self, name: str) -> float | None:
        """Return the session timeout of a group of the consumer protocol; None if the broker does not return it."""
        resource = ConfigResource(ResourceType.GROUP, name)
        future = self._admin.describe_configs([resource], request_timeout=ANSWER_SECONDS)[resource]
        try:
            return int(answer(future)["consumer.session.timeout.ms"].value) / 1000
        except (KafkaException, KeyError, TypeError, ValueError):  # an old broker, or no permission
            return None

    def committed(
        self, names: Iterable[str], *, stable: bool = False
    ) -> dict[str, dict[TopicPartition, CommittedOffset] | PenstockError]:
        """Return all committed offsets of each group; with ``stable``, an open transaction on them is an error."""
        found: dict[str, dict[TopicPartition, CommittedOffset] | PenstockError] = {}
        for batch in batches(names):
            # The client accepts one group per call, but the calls can run at the same time.
            asked = {
                name: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=ANSWER_SECONDS, require_stable=stable
                )[name]
                for name in batch
            }
            for name, future in asked.items():
                try:
                    found[name] = _commits(self._result(future, f"reading the offsets of group {name}", none=None))
                except PenstockError as error:
                    found[name] = error
        return found

    def commit(self, group: str, commits: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Set offsets and metadata of a group without members; the broker refuses if it has members."""
        if not commits:
            return
        offsets = {tp: each.offset for tp, each in commits.items()}
        self._cluster.commit(group, offsets, {tp: each.metadata for tp, each in commits.items()})

    def delete(self, names: Sequence[str]) -> dict[str, PenstockError | None]:
        """Delete groups; return the error of each, or None."""
        outcomes: dict[str, PenstockError | None] = {}
        for batch in batches(names):
            futures = self._admin.delete_consumer_groups(list(batch), request_timeout=ANSWER_SECONDS)
            for name, future in futures.items():
                try:
                    self._result(future, f"deleting group {name}")
                    outcomes[name] = None
                except PenstockError as error:
                    outcomes[name] = error
        return outcomes

    def _result(self, future: "Future[Any]", doing: str, **otherwise: Any) -> Any:
        """Wait for a result. If ``none`` is given, it is the result for a group that does not exist."""
        try:
            return answer(future)
        except KafkaException as error:
            inner = kafka_error(error)
            if "none" in otherwise and inner is not None and inner.code() == Code.GROUP_ID_NOT_FOUND:
                return otherwise["none"]
            raise self._translated(error, doing) from error

    def _translated(self, error: BaseException, doing: str) -> PenstockError:
        return translate(error, doing=doing, brokers=self._cluster.brokers, settings=self._cluster.settings)


def _description(found: ConsumerGroupDescription | None, name: str) -> GroupDescription:
    if found is None:
        return GroupDescription(name, "Unknown", "Dead", "", "", ())
    node = found.coordinator
    return GroupDescription(
        found.group_id,
        _word(found.type),
        _state(found),
        found.partition_assignor or "",
        f"{node.host}:{node.port} ({node.id})" if node is not None else "",
        tuple(_member(each) for each in found.members),
        found.is_simple_consumer_group,
    )


def _member(found: MemberDescription) -> DescribedMember:
    partitions = _tps(found.assignment)
    return DescribedMember(
        found.member_id,
        found.client_id,
        found.host,
        found.group_instance_id,
        partitions,
        partitions if found.target_assignment is None else _tps(found.target_assignment),
    )


def _tps(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(sorted((each.topic, each.partition) for each in assignment.topic_partitions))


def _commits(found: Any) -> dict[TopicPartition, CommittedOffset]:
    tps = (found.topic_partitions or []) if found is not None else []
    return {
        (each.topic, each.partition): CommittedOffset(each.offset, each.metadata or "")
        for each in tps
        if each.offset >= 0 and each.error is None
    }


def _state(found: Any) -> str:
    """Return the state of a group, from its listing or its description.

    The client does not know the states Assigning and Reconciling of the consumer protocol, and calls both unknown.
    """
    if found.type is ConsumerGroupType.CONSUMER and found.state is ConsumerGroupState.UNKNOWN:
        return "Rebalancing"
    return _word(found.state)


def _word(value: Any) -> str:
    """Spell states and types like Kafka's tools: PREPARING_REBALANCING is PreparingRebalance."""
    words = {"PREPARING_REBALANCING": "PreparingRebalance", "COMPLETING_REBALANCING": "CompletingRebalance"}
    return words.get(value.name) or value.name.capitalize()


def batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    everything = list(items)
    for start in range(0, len(everything), _AT_ONCE):
        yield everything[start : start + _AT_ONCE]
