"""Members of one group that are plain Kafka clients, all polled by the lesson's own thread."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer

from penstock.core.records.record import TopicPartition
from penstock.kafka import close_member, make_consumer
from penstock.learn.sandbox import QUICK_MEMBERS, Sandbox

_POLL_SECONDS = 0.05


class PlainMembers:
    """A context manager. The client ids are the members' names, so that assignors sort the members by name."""

    def __init__(self, sandbox: Sandbox, group: str, assignor: str) -> None:
        self._sandbox = sandbox
        self._group = group
        self._settings = {**QUICK_MEMBERS, "partition.assignment.strategy": assignor}
        self._consumers: dict[str, Consumer] = {}
        self._topics: dict[str, tuple[str, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in [*self._consumers]:
            self.leave(name)

    def join(self, name: str, topics: Sequence[str]) -> None:
        member = {**self._settings, "client.id": name}
        self._consumers[name] = make_consumer(self._sandbox.brokers, self._group, settings={}, member=member)
        self._topics[name] = tuple(topics)
        self._consumers[name].subscribe([*topics])

    def leave(self, name: str) -> None:
        consumer = self._consumers.pop(name)
        del self._topics[name]
        close_member(consumer, owns_partitions=bool(consumer.assignment()))

    def settle(self) -> Mapping[str, tuple[TopicPartition, ...]]:
        """Poll the members until each partition has one owner; return what the broker says about the members."""
        wanted = sorted(
            self._sandbox.cluster.topic_partitions({name for each in self._topics.values() for name in each})
        )

        def look() -> dict[str, tuple[TopicPartition, ...]] | None:
            for consumer in self._consumers.values():
                consumer.poll(_POLL_SECONDS)
            found = self._sandbox.described(self._group)
            owned = {member.client: tuple(sorted(member.partitions)) for member in found.members}
            is_complete = sorted(tp for tps in owned.values() for tp in tps) == wanted
            return owned if found.state == "Stable" and is_complete and owned.keys() == self._topics.keys() else None

        return self._sandbox.wait_until(look, "each partition has one owner")
