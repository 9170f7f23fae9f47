"""Questions and small changes to a cluster: topics, offsets, groups."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from penstock.core.record import TopicPartition as Place
from penstock.errors import TopicError
from penstock.kafka.addresses import require_listener
from penstock.kafka.clients import LOG
from penstock.kafka.failures import kafka_error, translate
from penstock.kafka.settings import admin_settings

# How long a broker may take to answer a question before it counts as not there.
ANSWER_SECONDS = 8.0
_COORDINATOR_RETRY_SECONDS = 0.2
_NO_COORDINATOR_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


class Cluster:
    """One Kafka cluster, by its bootstrap servers. Every method raises a PenstockError that says what to do."""

    def __init__(self, brokers: str, settings: Mapping[str, Any] | None = None) -> None:
        self.brokers = brokers
        require_listener(brokers)
        try:
            self._admin = AdminClient(
                {**admin_settings(settings or {}), "bootstrap.servers": brokers, "socket.timeout.ms": 5000}, logger=LOG
            )
        except KafkaException as error:
            raise translate(error, doing="connecting", brokers=brokers, settings=settings) from error

    def id(self) -> str:
        """The cluster's own id, which outlives its addresses."""
        return str(self._metadata("asking for the cluster id").cluster_id)

    def topics(self) -> dict[str, int]:
        """Every topic, with its number of partitions."""
        found = self._metadata("listing topics").topics
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Kafka's own ids of these topics, which change when one is made anew; those that are missing are left out."""
        asked = list(names)
        futures = self._admin.describe_topics(TopicCollection(asked), request_timeout=ANSWER_SECONDS) if asked else {}
        ids = {}
        for name, future in futures.items():
            try:
                ids[name] = str(future.result().topic_id)
            except KafkaException as error:
                if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise translate(error, doing=f"describing topic {name}", brokers=self.brokers) from error
        return ids

    def require_topics(self, names: Iterable[str]) -> dict[str, int]:
        """These topics with their numbers of partitions; one that is missing is an error with the nearest name."""
        existing = self.topics()
        for name in names:
            if name not in existing:
                nearest = get_close_matches(name, existing, n=1)
                hint = f"Did you mean {nearest[0]!r}?" if nearest else "Create it, or check its name."
                raise TopicError(f"Topic {name!r} does not exist at {self.brokers}.", hint=hint)
        return {name: existing[name] for name in names}

    def create_topics(
        self, names: Iterable[str], *, partitions: int, config: Mapping[str, str] | None = None
    ) -> list[str]:
        """Create those that are missing, with the broker's default replication; returns the ones it created."""
        existing = self.topics()
        wanted = [
            NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
            for name in names
            if name not in existing
        ]
        created = []
        for name, future in (self._admin.create_topics(wanted) if wanted else {}).items():
            # Somebody else may have been quicker, and that is fine.
            if self._wait(future, f"creating topic {name}", ignore=KafkaError.TOPIC_ALREADY_EXISTS):
                created.append(name)
        return created

    def delete_topics(self, names: Sequence[str]) -> None:
        for name, future in (self._admin.delete_topics(list(names)) if names else {}).items():
            self._wait(future, f"deleting topic {name}", ignore=KafkaError.UNKNOWN_TOPIC_OR_PART)

    def delete_group(self, group: str) -> None:
        for future in self._admin.delete_consumer_groups([group]).values():
            self._wait(future, f"deleting group {group}", ignore=KafkaError.GROUP_ID_NOT_FOUND)

    def places(self, topics: Iterable[str]) -> list[Place]:
        return [(topic, n) for topic, count in self.require_topics(list(topics)).items() for n in range(count)]

    def start_offsets(self, places: Iterable[Place]) -> dict[Place, int]:
        return self._offsets(places, OffsetSpec.earliest())

    def offsets_at(self, places: Iterable[Place], moment: datetime) -> dict[Place, int]:
        """The first offset from this moment on; the end where there is none."""
        places = list(places)
        found = self._offsets(places, OffsetSpec.for_timestamp(int(moment.timestamp() * 1000)))
        missing = self.end_offsets(place for place, offset in found.items() if offset < 0)
        return {**found, **missing}

    def end_offsets(self, places: Iterable[Place]) -> dict[Place, int]:
        """The offset that the next record of each partition will get."""
        return self._offsets(places, OffsetSpec.latest())

    def members(self, group: str) -> int:
        """How many members the group has right now; none where there is no such group."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            future = self._admin.describe_consumer_groups([group], request_timeout=ANSWER_SECONDS)[group]
            try:
                return len(future.result().members)
            except KafkaException as error:
                if _code(error) == KafkaError.GROUP_ID_NOT_FOUND:
                    return 0
                # A cluster that has just started looks for a moment as if nobody kept its groups.
                if _code(error) not in _NO_COORDINATOR_YET or time.monotonic() > deadline:
                    raise translate(error, doing=f"describing group {group}", brokers=self.brokers) from error
            time.sleep(_COORDINATOR_RETRY_SECONDS)

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, int]:
        """The group's committed offsets; partitions without one are left out."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(*place) for place in places])
        future = self._admin.list_consumer_group_offsets([asked], request_timeout=ANSWER_SECONDS)[group]
        try:
            found = future.result().topic_partitions or []
        except KafkaException as error:
            if _code(error) == KafkaError.GROUP_ID_NOT_FOUND:
                return {}
            raise translate(error, doing=f"reading the offsets of group {group}", brokers=self.brokers) from error
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def lag(self, group: str, topics: Iterable[str], *, start: str = "earliest") -> int:
        """Records between the group's offsets and the topics' ends; ``start`` says where it begins without one."""
        places = self.places(topics)
        ends, starts, committed = self.end_offsets(places), self.start_offsets(places), self.committed(group, places)
        fresh = starts if start == "earliest" else ends
        return sum(max(0, ends[place] - max(starts[place], committed.get(place, fresh[place]))) for place in places)

    def commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Set offsets of a group that has no members; the broker refuses where it has some."""
        if not offsets:
            return
        wanted = [TopicPartition(topic, n, offset) for (topic, n), offset in offsets.items()]
        futures = self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])
        doing = f"committing offsets of group {group}"
        try:
            answered = futures[group].result(timeout=ANSWER_SECONDS).topic_partitions or []
        except (KafkaException, TimeoutError) as error:
            raise translate(error, doing=doing, brokers=self.brokers) from error
        for each in answered:
            if each.error is not None:
                raise translate(KafkaException(each.error), doing=doing, brokers=self.brokers)

    def _offsets(self, places: Iterable[Place], spec: OffsetSpec) -> dict[Place, int]:
        asked = {TopicPartition(*place): spec for place in places}
        futures = self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS) if asked else {}
        found = {}
        for place, future in futures.items():
            try:
                found[place.topic, place.partition] = future.result().offset
            except KafkaException as error:
                raise translate(error, doing=f"reading offsets of {place.topic}", brokers=self.brokers) from error
        return found

    def _metadata(self, doing: str) -> Any:
        try:
            return self._admin.list_topics(timeout=ANSWER_SECONDS)
        except KafkaException as error:
            raise translate(error, doing=doing, brokers=self.brokers) from error

    def _wait(self, future: Any, doing: str, *, ignore: int) -> bool:
        """Whether the change was made; False where it failed with the code to ignore."""
        try:
            future.result()
        except KafkaException as error:
            if _code(error) == ignore:
                return False
            raise translate(error, doing=doing, brokers=self.brokers) from error
        return True


def _code(error: KafkaException) -> int | None:
    inner = kafka_error(error)
    return None if inner is None else inner.code()
