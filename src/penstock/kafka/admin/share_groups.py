"""Describes share groups and sets their offsets, with kafka-python: confluent-kafka can only consume from them."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException

from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.answers import ANSWER_SECONDS
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import (
    SHARE,
    CommittedOffset,
    DescribedMember,
    GroupDescription,
    GroupListing,
    batches,
)
from penstock.kafka.client.kafka_python import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ShareGroupDescribeRequest,
    kafka_python_errors,
)
from penstock.kafka.client.kafka_python_connection import KafkaPythonNetwork, to_confluent_error
from penstock.kafka.client.kafka_python_settings import kafka_python_config
from penstock.kafka.error_codes import COORDINATOR_UNREACHABLE, NO_SUCH_SHARE_GROUP, SHARE_GROUPS_UNSUPPORTED
from penstock.kafka.errors import translate

_RETRY_SECONDS = 0.2
# Enough for the names and states of many thousands of groups.
_MAX_ANSWER_BYTES = 100_000_000
# The first request versions with group types, with several groups, and with the final form of share groups.
_LIST_VERSION = 5
_FIND_VERSION = 4
_DESCRIBE_VERSION = 1

_Answer = tuple[Any, Any]
"""A group's coordinator, and its answer about the group."""


class ShareGroups:
    """Use it in a ``with`` block. An error of one group does not affect the others."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._config = kafka_python_config(cluster.brokers, cluster.settings, used_for="share groups")
        self._config["receive_message_max_bytes"] = _MAX_ANSWER_BYTES

    def __enter__(self) -> Self:
        self._network = KafkaPythonNetwork(self._config)
        self._connection = self._network.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._network.close()

    def listed(self) -> list[GroupListing]:
        """Return all share groups, sorted by name; [] if the brokers do not know share groups."""
        try:
            answers = self._connection.run(self._connection.ask_all_brokers, _list_request, ANSWER_SECONDS)
            for answer in answers:
                _check(answer)
        except KafkaException as error:
            if error.args[0].code() in SHARE_GROUPS_UNSUPPORTED:
                return []
            raise self._translated(error, "listing share groups") from error
        found = {
            each.group_id: GroupListing(each.group_id, SHARE, each.group_state)
            for answer in answers
            for each in answer.groups
            if each.group_type.lower() == SHARE.lower()
        }
        return [found[name] for name in sorted(found)]

    def describe(self, names: Iterable[str]) -> dict[str, GroupDescription | PenstockError]:
        """Describe groups. A group that does not exist, or is no share group, has the state Dead, as in Kafka."""

        def request(some: list[str]) -> Any:
            return ShareGroupDescribeRequest(
                group_ids=some, include_authorized_operations=False, min_version=_DESCRIBE_VERSION
            )

        found: dict[str, GroupDescription | PenstockError] = {}
        for name, answer in self._answers(names, request).items():
            if isinstance(answer, KafkaException):
                if answer.args[0].code() in NO_SUCH_SHARE_GROUP:
                    found[name] = GroupDescription(name, "Unknown", "Dead", "", "", ())
                else:
                    found[name] = self._translated(answer, f"describing group {name}")
            else:
                found[name] = _description(*answer)
        return found

    def starts(self, names: Iterable[str]) -> dict[str, dict[TopicPartition, CommittedOffset | None] | PenstockError]:
        """Return the start offset and the lag of each partition. All records before the start offset are finished.

        None for a partition that the group has not read yet: the broker sets the start offset at the first read.
        """

        def request(some: list[str]) -> Any:
            group = DescribeShareGroupOffsetsRequest.RequestedGroup
            return DescribeShareGroupOffsetsRequest(groups=[group(group_id=name, topics=None) for name in some])

        found: dict[str, dict[TopicPartition, CommittedOffset | None] | PenstockError] = {}
        for name, answer in self._answers(names, request).items():
            try:
                if isinstance(answer, KafkaException):
                    raise answer
                found[name] = _starts(answer[1])
            except KafkaException as error:
                found[name] = self._translated(error, f"reading the offsets of group {name}")
        return found

    def set_starts(self, name: str, starts: Mapping[TopicPartition, int]) -> None:
        """Set the start offsets of a group without members; the broker refuses if it has members."""
        topic = AlterShareGroupOffsetsRequest.AlteredTopic
        by_topic: dict[str, list[Any]] = {}
        for (topic_name, number), offset in starts.items():
            one = topic.AlteredPartition(partition_index=number, start_offset=offset)
            by_topic.setdefault(topic_name, []).append(one)
        topics = [topic(topic_name=each, partitions=some) for each, some in by_topic.items()]
        if topics:
            self._change(AlterShareGroupOffsetsRequest(group_id=name, topics=topics), name)

    def forget_starts(self, name: str, topics: Iterable[str]) -> None:
        """Delete the group's offsets of these topics, as if the group had not read them yet."""
        named = [DeleteShareGroupOffsetsRequest.DeletedTopic(topic_name=each) for each in topics]
        if named:
            self._change(DeleteShareGroupOffsetsRequest(group_id=name, topics=named), name)

    def _change(self, request: Any, name: str) -> None:
        """Send the request, and retry passing errors. The broker may execute the request twice."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                answer = self._connection.run(self._of_coordinator, name, request)
                for each in (answer, *(part for topic in answer.responses for part in _parts(topic))):
                    _check(each)
            except KafkaException as error:
                if error.args[0].code() not in COORDINATOR_UNREACHABLE or time.monotonic() > deadline:
                    raise self._translated(error, f"setting the offsets of group {name}") from error
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def _answers(
        self, names: Iterable[str], request: Callable[[list[str]], Any]
    ) -> dict[str, _Answer | KafkaException]:
        """Return the coordinator's answer about each group; retry passing errors."""
        found: dict[str, _Answer | KafkaException] = {}
        for some in batches(names):
            left, deadline = some, time.monotonic() + ANSWER_SECONDS
            while left:
                found |= self._one_round(left, request)
                left = [name for name in left if _code(found[name]) in COORDINATOR_UNREACHABLE]
                if time.monotonic() > deadline:
                    break
                if left:
                    time.sleep(_RETRY_SECONDS)
        return found

    def _one_round(self, names: list[str], request: Callable[[list[str]], Any]) -> dict[str, _Answer | KafkaException]:
        try:
            return dict(self._connection.run(self._of_coordinators, names, request))
        except KafkaException as error:
            return dict.fromkeys(names, error)

    # Runs on the network thread.

    async def _of_coordinators(
        self, names: list[str], request: Callable[[list[str]], Any]
    ) -> dict[str, _Answer | KafkaException]:
        where = FindCoordinatorRequest(key_type=0, coordinator_keys=names, min_version=_FIND_VERSION)
        found: dict[str, _Answer | KafkaException] = {}
        by_node: dict[int, dict[str, Any]] = {}
        for each in (await self._connection.ask(where, ANSWER_SECONDS)).coordinators:
            if each.error_code:
                found[each.key] = _failure(each)
            else:
                by_node.setdefault(each.node_id, {})[each.key] = each
        asked = [
            (there, self._connection.send(request(list(there)), ANSWER_SECONDS, node=node))
            for node, there in by_node.items()
        ]
        for there, sent in asked:
            try:
                answers = (await self._connection.answer(sent, ANSWER_SECONDS)).groups
            except kafka_python_errors.KafkaError as error:
                found |= dict.fromkeys(there, to_confluent_error(error))
                continue
            for each in answers:
                found[each.group_id] = _failure(each) if each.error_code else (there[each.group_id], each)
        return found

    async def _of_coordinator(self, name: str, request: Any) -> Any:
        where = FindCoordinatorRequest(key_type=0, coordinator_keys=[name], min_version=_FIND_VERSION)
        (found,) = (await self._connection.ask(where, ANSWER_SECONDS)).coordinators
        _check(found)
        return await self._connection.ask(request, ANSWER_SECONDS, node=found.node_id)

    def _translated(self, error: KafkaException, doing: str) -> PenstockError:
        return translate(error, doing=doing, brokers=self._cluster.brokers, settings=self._cluster.settings)


def _list_request() -> Any:
    return ListGroupsRequest(types_filter=[SHARE.lower()], min_version=_LIST_VERSION)


def _failure(answer: Any) -> KafkaException:
    return KafkaException(KafkaError(answer.error_code, getattr(answer, "error_message", None)))


def _parts(topic: Any) -> tuple[Any, ...]:
    """Return the parts of a topic's answer that have an error code."""
    return tuple(topic.partitions) if hasattr(topic, "partitions") else (topic,)


def _check(answer: Any) -> None:
    if answer.error_code:
        raise _failure(answer)


def _code(answer: _Answer | KafkaException) -> int:
    return int(answer.args[0].code()) if isinstance(answer, KafkaException) else 0


def _description(node: Any, group: Any) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        SHARE,
        group.group_state,
        group.assignor_name,
        f"{node.host}:{node.port} ({node.node_id})",
        tuple(_member(each) for each in group.members),
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _member(found: Any) -> DescribedMember:
    tps = tuple(
        sorted((topic.topic_name, number) for topic in found.assignment.topic_partitions for number in topic.partitions)
    )
    return DescribedMember(found.member_id, found.client_id, found.client_host, None, tps, tps, rack=found.rack_id)


def _starts(group: Any) -> dict[TopicPartition, CommittedOffset | None]:
    found = {}
    for topic in group.topics:
        for each in topic.partitions:
            _check(each)
            lag = each.lag if each.lag >= 0 else None
            start = CommittedOffset(each.start_offset, lag=lag) if each.start_offset >= 0 else None
            found[topic.topic_name, each.partition_index] = start
    return found
