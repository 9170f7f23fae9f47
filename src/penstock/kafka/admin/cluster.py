"""Reads and changes topics, offsets and groups of a cluster."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import (
    TopicPartition as KafkaTopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError, ServerError, TopicError
from penstock.kafka.admin.answers import ANSWER_SECONDS, answer
from penstock.kafka.admin.committed_offsets import CommittedOffsets
from penstock.kafka.admin.diagnosis import why_silent
from penstock.kafka.client.addresses import require_listener
from penstock.kafka.client.clients import LOG
from penstock.kafka.client.settings_by_client import admin_settings
from penstock.kafka.error_codes import (
    NO_ANSWER,
    NO_BROKERS_YET,
    NO_COORDINATOR_YET,
    NO_LEADER_YET,
    NOT_CREATED_YET,
    NOT_STABLE_YET,
    ONLY_MEMBERS_COMMIT,
    Code,
)
from penstock.kafka.errors import commit_refusal, kafka_error, translate

T = TypeVar("T")

# After this time without an answer, look for the reason.
_FIRST_SECONDS = 1.0
_RETRY_SECONDS = 0.2
# The same for what is over within milliseconds.
_SHORT_RETRY_SECONDS = 0.02


class Cluster:
    """One Kafka cluster, given by its bootstrap servers. Every method raises a PenstockError that says what to do."""

    def __init__(self, brokers: str, settings: Mapping[str, Any] | None = None) -> None:
        self.brokers = brokers
        self.settings = settings or {}
        require_listener(brokers)
        try:
            self._admin = AdminClient(
                {**admin_settings(settings or {}), "bootstrap.servers": brokers, "socket.timeout.ms": 5000}, logger=LOG
            )
        except KafkaException as error:
            raise translate(error, doing="connecting", brokers=brokers, settings=settings) from error
        self._groups: dict[tuple[str, bool], CommittedOffsets] = {}

    @property
    def admin(self) -> AdminClient:
        """The admin client, for the other modules of this package."""
        return self._admin

    def id(self) -> str:
        """Return the cluster id, which stays the same when addresses change."""
        return str(self._metadata("asking for the cluster id").cluster_id)

    def topics(self) -> dict[str, int]:
        """Return every topic with its number of partitions."""
        found = self._metadata("listing topics").topics
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the topic ids, which change when a topic is recreated; missing topics are left out."""
        asked = list(names)
        futures = self._admin.describe_topics(TopicCollection(asked), request_timeout=ANSWER_SECONDS) if asked else {}
        ids = {}
        for name, future in futures.items():
            try:
                ids[name] = str(answer(future).topic_id)
            except KafkaException as error:
                if _code(error) != Code.UNKNOWN_TOPIC_OR_PART:
                    raise translate(error, doing=f"describing topic {name}", brokers=self.brokers) from error
        return ids

    def require_topics(self, names: Iterable[str]) -> dict[str, int]:
        """Return these topics with their numbers of partitions; raise for a missing one, with the most similar name."""
        existing = self.topics()
        for name in names:
            if name not in existing:
                # The list leaves out topics that ACLs hide. A request by name fails for them with a clear error.
                self.topic_ids([name])
                nearest = get_close_matches(name, existing, n=1)
                create = f"Create it with `penstock topics create {name} --partitions 4`, or check its name."
                hint = f"Did you mean {nearest[0]!r}?" if nearest else create
                raise TopicError(f"Topic {name!r} does not exist at {self.brokers}.", hint=hint)
        return {name: existing[name] for name in names}

    def require_sight(self, kind: str) -> None:
        """Raise if ACLs hide all topics or groups. Call it if a list is empty.

        Brokers silently leave out of a list what this login may not see.
        """
        try:
            found = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=ANSWER_SECONDS)
            allowed = answer(found).authorized_operations
        except KafkaException as error:
            raise translate(error, doing="asking what is allowed", brokers=self.brokers) from error
        if AclOperation.DESCRIBE not in (allowed or ()):
            raise ServerError(
                f"The list of {kind}s at {self.brokers} is empty because this login may not describe any {kind}.",
                hint=f"Ask for an ACL: DESCRIBE on the {kind}s, or on the cluster.",
            )

    def largest_batches(self, names: Iterable[str]) -> dict[str, int]:
        """Return each topic's max.message.bytes; topics whose settings cannot be read are left out."""
        asked = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
        futures = self._admin.describe_configs([*asked.values()], request_timeout=ANSWER_SECONDS) if asked else {}
        found = {}
        for resource, future in futures.items():
            with suppress(KafkaException):
                found[resource.name] = int(answer(future)["max.message.bytes"].value)
        return found

    def create_topics(
        self, names: Iterable[str], *, partitions: int, config: Mapping[str, str] | None = None
    ) -> list[str]:
        """Create the missing topics with the broker's default replication; return those that were created.

        Their partitions have leaders then, so that consumers and producers need not wait for them.
        """
        existing = self.topics()
        wanted = [
            NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
            for name in names
            if name not in existing
        ]
        deadline = time.monotonic() + ANSWER_SECONDS
        created = [topic.topic for topic in wanted if self._create(topic, deadline)]
        # An error here is not one of the creation: the login may create topics, and not describe them.
        with suppress(PenstockError):
            self.topic_ids(created)
            tps = [(topic, partition) for topic in created for partition in range(partitions)]
            self._offsets(tps, OffsetSpec.latest(), passing=NOT_CREATED_YET, pause=_SHORT_RETRY_SECONDS)
        return created

    def _create(self, topic: NewTopic, deadline: float) -> bool:
        """Create the topic; return False if it exists, for example because another process was quicker."""

        def ask() -> None:
            answer(self._admin.create_topics([topic], request_timeout=ANSWER_SECONDS)[topic.topic])

        try:
            _retry(ask, NO_BROKERS_YET, deadline)
        except KafkaException as error:
            if _code(error) == Code.TOPIC_ALREADY_EXISTS:
                return False
            raise self._no_answer(error, f"creating topic {topic.topic}") from error
        return True

    def delete_topics(self, names: Sequence[str]) -> None:
        for name, future in (
            self._admin.delete_topics(list(names), request_timeout=ANSWER_SECONDS) if names else {}
        ).items():
            self._wait(future, f"deleting topic {name}", ignore=Code.UNKNOWN_TOPIC_OR_PART)

    def delete_group(self, group: str) -> None:
        for future in self._admin.delete_consumer_groups([group], request_timeout=ANSWER_SECONDS).values():
            self._wait(future, f"deleting group {group}", ignore=Code.GROUP_ID_NOT_FOUND)

    def topic_partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        return [(topic, n) for topic, count in self.require_topics(list(topics)).items() for n in range(count)]

    def start_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(tps, OffsetSpec.earliest())

    def offsets_at(self, tps: Iterable[TopicPartition], moment: datetime) -> dict[TopicPartition, int]:
        """Return the first offset at or after this time, or the end offset if there is none."""
        tps = list(tps)
        ends = self.end_offsets(tps)  # first, so that a record that is written meanwhile is not skipped
        found = self._offsets(tps, OffsetSpec.for_timestamp(int(moment.timestamp() * 1000)))
        return {tp: ends[tp] if offset < 0 else offset for tp, offset in found.items()}

    def end_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the next record of each partition."""
        return self._offsets(tps, OffsetSpec.latest())

    def stable_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where a read-committed consumer can read now: an open transaction holds it back."""
        return self._offsets(tps, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)

    def members(self, group: str) -> int:
        """Return the current number of members; 0 if the group does not exist."""

        def ask() -> Any:
            return answer(self._admin.describe_consumer_groups([group], request_timeout=ANSWER_SECONDS)[group])

        try:
            # A cluster that has just started has no coordinator for a moment.
            return len(_retry(ask, NO_COORDINATOR_YET, time.monotonic() + ANSWER_SECONDS).members)
        except KafkaException as error:
            if _code(error) == Code.GROUP_ID_NOT_FOUND:
                return 0
            raise translate(error, doing=f"describing group {group}", brokers=self.brokers) from error

    def committed(self, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets; partitions without one are left out."""
        return {tp: offset for tp, (offset, _) in self.commits(group, tps).items()}

    def commits(self, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        """Return the group's committed offsets with their metadata; partitions without one are left out."""
        try:
            found = self._committed(group, tps)
        except KafkaException as error:
            raise self._no_offsets(group, error) from error
        return {tp: (each.offset, each.metadata or "") for tp, each in found.items() if each.offset >= 0}

    def stable_offsets(self, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the committed offsets once no open transaction can change them; this may wait for transactions."""
        return {tp: offset for tp, (offset, _) in self.stable_commits(group, tps).items()}

    def stable_commits(self, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        """Return the same with the metadata of the commits."""
        asked = list(tps)

        def ask() -> dict[TopicPartition, tuple[int, str]]:
            found = self._committed(group, asked, stable=True)
            error = next((each.error for each in found.values() if each.error is not None), None)
            if error is not None:
                raise KafkaException(error)
            return {tp: (each.offset, each.metadata or "") for tp, each in found.items() if each.offset >= 0}

        try:
            deadline = time.monotonic() + ANSWER_SECONDS
            return _retry(ask, NOT_STABLE_YET, deadline, pause=_SHORT_RETRY_SECONDS)
        except KafkaException as error:
            raise self._no_offsets(group, error) from error

    def lag(self, group: str, topics: Iterable[str], *, start: str = "earliest") -> int:
        """Return the number of records after the group's offsets; ``start`` applies where the group has none."""
        tps = self.topic_partitions(topics)
        ends, starts, committed = self.end_offsets(tps), self.start_offsets(tps), self.committed(group, tps)
        fresh = starts if start == "earliest" else ends
        return sum(max(0, ends[tp] - max(starts[tp], committed.get(tp, fresh[tp]))) for tp in tps)

    def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str] | None = None
    ) -> None:
        """Set the offsets of a group that has no members; the broker refuses if it has members.

        This replaces the metadata of earlier commits, with "" where ``metadata`` has nothing.
        """
        if not offsets:
            return
        texts = metadata or {}
        wanted = {tp: (offset, texts.get(tp, "")) for tp, offset in offsets.items()}
        try:
            self._offsets_of(group).write(wanted, seconds=ANSWER_SECONDS)
        except KafkaException as error:
            # The answer may come later and would be taken for the answer to the next commit.
            self._groups.pop((group, False)).close()
            refused = kafka_error(error)
            if refused is not None and refused.code() in ONLY_MEMBERS_COMMIT:
                raise ServerError(
                    f"The offsets of group {group!r} cannot be committed: {commit_refusal(refused, is_member=False)}.",
                    hint="Stop the members of the group first.",
                ) from error
            raise self._no_answer(error, f"committing offsets of group {group}") from error

    def _offsets_of(self, group: str, *, stable: bool = False) -> CommittedOffsets:
        if (group, stable) not in self._groups:
            self._groups[group, stable] = CommittedOffsets(self.brokers, group, settings=self.settings, stable=stable)
        return self._groups[group, stable]

    def _committed(
        self, group: str, tps: Iterable[TopicPartition], *, stable: bool = False
    ) -> dict[TopicPartition, KafkaTopicPartition]:
        return self._offsets_of(group, stable=stable).read(tps, seconds=ANSWER_SECONDS)

    def _no_offsets(self, group: str, error: KafkaException) -> PenstockError:
        return translate(error, doing=f"reading the offsets of group {group}", brokers=self.brokers)

    def _offsets(
        self,
        tps: Iterable[TopicPartition],
        spec: OffsetSpec,
        *,
        passing: Collection[int] = NO_LEADER_YET,
        pause: float | None = None,
        **options: Any,
    ) -> dict[TopicPartition, int]:
        asked = {KafkaTopicPartition(*tp): spec for tp in tps}
        topics = sorted({tp.topic for tp in asked})

        def ask() -> dict[TopicPartition, int]:
            futures = self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS, **options) if asked else {}
            try:
                return {(tp.topic, tp.partition): answer(future).offset for tp, future in futures.items()}
            except KafkaException as error:
                if _code(error) == Code.LOCAL_NOENT:
                    self._forget_missing(topics, passing)
                raise

        try:
            return _retry(ask, passing, time.monotonic() + ANSWER_SECONDS, pause=pause)
        except KafkaException as error:
            raise translate(error, doing=f"reading offsets of {', '.join(topics)}", brokers=self.brokers) from error

    def _forget_missing(self, topics: Iterable[str], passing: Collection[int]) -> None:
        """Refresh the client's metadata.

        A client that asked for a topic too early remembers for many seconds that it does not exist, and does not ask
        again. Raise if the topic really does not exist.
        """
        existing = self.topics()
        if Code.UNKNOWN_TOPIC_OR_PART not in passing and not existing.keys() >= set(topics):
            raise KafkaException(KafkaError(Code.UNKNOWN_TOPIC_OR_PART))

    def _metadata(self, doing: str) -> Any:
        try:
            return self._admin.list_topics(timeout=_FIRST_SECONDS)
        except KafkaException as error:
            if _code(error) not in NO_ANSWER:
                raise self._no_answer(error, doing) from error
            reason = why_silent(self.brokers, self.settings)
            if reason is not None:
                raise reason from error
        try:
            return self._admin.list_topics(timeout=ANSWER_SECONDS - _FIRST_SECONDS)
        except KafkaException as error:
            raise self._no_answer(error, doing) from error

    def _no_answer(self, error: KafkaException, doing: str) -> PenstockError:
        return translate(error, doing=doing, brokers=self.brokers, settings=self.settings)

    def _wait(self, future: Any, doing: str, *, ignore: int) -> None:
        """Wait for the change. An error with the code ``ignore`` means that there is nothing to change."""
        try:
            answer(future)
        except KafkaException as error:
            if _code(error) != ignore:
                raise translate(error, doing=doing, brokers=self.brokers) from error


def _retry(ask: Callable[[], T], passing: Collection[int], deadline: float, *, pause: float | None = None) -> T:
    """Call ``ask`` again while it fails with a ``passing`` code, until the deadline."""
    while True:
        try:
            return ask()
        except KafkaException as error:
            if _code(error) not in passing or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS if pause is None else pause)


def _code(error: KafkaException) -> int | None:
    inner = kafka_error(error)
    return None if inner is None else inner.code()
