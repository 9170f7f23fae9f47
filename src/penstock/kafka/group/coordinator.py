"""Requests to a group's coordinator, with kafka-python: librdkafka does not expose its group requests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from penstock.assign import Topic
from penstock.core.progress.commit_log import COMMIT_LOG
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import Coordinator
from penstock.kafka.client.kafka_python import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from penstock.kafka.client.kafka_python_connection import KafkaPythonConnection, KafkaPythonNetwork
from penstock.kafka.error_codes import COORDINATOR_MOVED, Code

PROTOCOL_TYPE = "consumer"
_ANSWER_SECONDS = 10.0
# The coordinator answers a join when all other members have joined, which may take a whole rebalance timeout.
_JOIN_GRACE_SECONDS = 5.0
# From version 10 on, OffsetCommit has topic ids in place of names.
_COMMIT_VERSION = 9
# librdkafka reads commit metadata up to this character; without it, librdkafka reads past the end.
_END = "\0"


@dataclass(frozen=True, slots=True)
class Identity:
    """The member's identity in requests to the coordinator."""

    group: str
    member_id: str
    generation: int
    static_id: str | None


@dataclass(frozen=True, slots=True)
class GroupMemberInfo:
    """A member as the coordinator lists it for the leader."""

    id: str
    static_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    """The coordinator's answer to a join. Only the leader gets the members."""

    member_id: str
    generation: int
    leader: str
    strategy: str
    members: tuple[GroupMemberInfo, ...]
    skip_assignment: bool

    @property
    def leads(self) -> bool:
        return self.leader == self.member_id


class CoordinatorConnection:
    """One connection to the coordinator.

    A broker answers the requests of one connection in order. A commit must not wait behind a join that waits for other
    members, so a member has two connections.
    """

    def __init__(self, connection: KafkaPythonConnection, group: str) -> None:
        self._connection = connection
        self._group = group
        self._node: Any = None  # the coordinator; None: find it before the next request

    # The group.

    def find_coordinator(self) -> Coordinator:
        found = self._run(self._find, _ANSWER_SECONDS)
        offsets = self.topics([COMMIT_LOG]).get(COMMIT_LOG)
        return Coordinator.of(
            self._group,
            node=found.node_id,
            address=f"{found.host}:{found.port}",
            offsets_partitions=offsets.partitions if offsets else None,
        )

    def reach(self, *, seconds: float) -> None:
        """Connect and find the coordinator; raise a KafkaException if that fails."""
        self._run(self._find, seconds)

    def join(
        self,
        identity: Identity,
        protocols: Sequence[tuple[str, bytes]],
        *,
        session_seconds: float,
        rebalance_seconds: float,
        reason: str,
    ) -> Joined:
        request = JoinGroupRequest(
            group_id=identity.group,
            session_timeout_ms=int(session_seconds * 1000),
            rebalance_timeout_ms=int(rebalance_seconds * 1000),
            member_id=identity.member_id,
            group_instance_id=identity.static_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
            reason=reason,
        )
        answer = self._ask(request, rebalance_seconds + _JOIN_GRACE_SECONDS)
        if answer.error_code == Code.MEMBER_ID_REQUIRED:
            return Joined(answer.member_id, -1, "", "", (), skip_assignment=False)
        self._check(answer.error_code)
        return Joined(
            answer.member_id,
            answer.generation_id,
            answer.leader,
            answer.protocol_name or "",
            tuple(
                GroupMemberInfo(each.member_id, each.group_instance_id, bytes(each.metadata)) for each in answer.members
            ),
            skip_assignment=bool(answer.skip_assignment),
        )

    def sync(self, identity: Identity, strategy: str, assignments: Mapping[str, bytes], *, seconds: float) -> bytes:
        request = SyncGroupRequest(
            group_id=identity.group,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.static_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=strategy,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        )
        answer = self._ask(request, seconds)
        self._check(answer.error_code)
        return bytes(answer.assignment)

    def heartbeat(self, identity: Identity, *, seconds: float) -> None:
        request = HeartbeatRequest(
            group_id=identity.group,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.static_id,
        )
        self._check(self._ask(request, seconds).error_code)

    def leave(self, identity: Identity, reason: str) -> None:
        one = LeaveGroupRequest.MemberIdentity(
            member_id=identity.member_id, group_instance_id=identity.static_id, reason=reason
        )
        request = LeaveGroupRequest(group_id=identity.group, member_id=identity.member_id, members=[one])
        self._check(self._ask(request, _ANSWER_SECONDS).error_code)

    # Commits.

    def commit(
        self, identity: Identity, commits: Mapping[TopicPartition, tuple[int, str]]
    ) -> dict[TopicPartition, int]:
        """Return the error code of each partition whose commit the coordinator refused."""
        return self._refused_partitions(self._ask(commit_request(identity, commits), _ANSWER_SECONDS))

    def commit_later(
        self,
        identity: Identity,
        commits: Mapping[TopicPartition, tuple[int, str]],
        on_answer: Callable[[dict[TopicPartition, int] | KafkaException], None],
    ) -> None:
        """``on_answer`` is called on the network's thread."""
        self._connection.run_later(
            self._answer,
            commit_request(identity, commits),
            _ANSWER_SECONDS,
            on_answer=lambda answer: on_answer(self._refused_partitions(answer)),
            on_error=on_answer,
        )

    # Topics.

    def topics(self, names: Iterable[str] | None) -> dict[str, Topic]:
        """Return those of these topics that exist, or all topics; with the replicas' racks if brokers have racks."""
        asked = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        if asked == []:
            return {}
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        answer = self._run(self._connection.ask, request, _ANSWER_SECONDS)
        racks = {broker.node_id: broker.rack for broker in answer.brokers if broker.rack}
        return {each.name: _topic(each, racks) for each in answer.topics if not each.error_code}

    # The connection.

    def forget(self) -> None:
        """Find the coordinator again before the next request."""
        self._node = None

    def _ask(self, request: Any, seconds: float) -> Any:
        return self._run(self._answer, request, seconds)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self._connection.run(function, *arguments)
        except KafkaException:
            self.forget()
            raise

    async def _answer(self, request: Any, seconds: float) -> Any:
        if self._node is None:
            await self._find(seconds)
        try:
            return await self._connection.ask(request, seconds, node=self._node)
        except Exception:
            self.forget()
            raise

    async def _find(self, seconds: float) -> Any:
        request = FindCoordinatorRequest(key=self._group, key_type=0, coordinator_keys=[self._group])
        answer = await self._connection.ask(request, seconds)
        found = answer.coordinators[0] if answer.coordinators else answer
        self._node = self._connection.coordinator_node(found, self._group)
        return found

    def _refused_partitions(self, answer: Any) -> dict[TopicPartition, int]:
        refused = {
            (topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code
        }
        if not COORDINATOR_MOVED.isdisjoint(refused.values()):
            self.forget()
        return refused

    def _check(self, code: int) -> None:
        if code in COORDINATOR_MOVED:
            self.forget()
        if code:
            raise KafkaException(KafkaError(code))


class CoordinatorNetwork:
    """The connections of one member to its coordinator, on one network thread."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._network = KafkaPythonNetwork(config)

    def connect(self, group: str) -> CoordinatorConnection:
        return CoordinatorConnection(self._network.connect(), group)

    def close(self) -> None:
        """Close all connections. Requests in progress fail with an error."""
        self._network.close()


def _topic(found: Any, racks: Mapping[int, str]) -> Topic:
    tps = sorted(found.partitions, key=lambda each: each.partition_index)
    known = [frozenset(racks[node] for node in each.replica_nodes if node in racks) for each in tps]
    return Topic(len(tps), racks=tuple(known) if racks else ())


def commit_request(identity: Identity, commits: Mapping[TopicPartition, tuple[int, str]]) -> Any:
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), (offset, metadata) in commits.items():
        by_topic.setdefault(topic, []).append(
            kind.OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_metadata=metadata + _END if metadata else "",
            )
        )
    return OffsetCommitRequest(
        group_id=identity.group,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.static_id,
        topics=[kind(name=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        max_version=_COMMIT_VERSION,
    )
