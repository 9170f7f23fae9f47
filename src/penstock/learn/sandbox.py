"""The topics, groups and apps of one lesson. Whatever ends the lesson, they are gone afterwards."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

from penstock.app import App
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.records.record import Record, TopicPartition
from penstock.errors import PenstockError, ServerError
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import DescribedMember, GroupDescription, Groups
from penstock.kafka.read.read_records import read_topic
from penstock.learn.picture import LessonStep
from penstock.ops.produce_records import produce

T = TypeVar("T")

# Long enough for a slow and busy machine.
_WAIT_SECONDS = 240.0
_PAUSE_SECONDS = 0.03
QUICK_MEMBERS = {
    # Members learn of a rebalance by a heartbeat.
    "heartbeat.interval.ms": 200,
    # You may look at a picture for an hour without ending the membership of a consumer that waits meanwhile.
    "max.poll.interval.ms": 3_600_000,
    "session.timeout.ms": 45_000,
}


class Sandbox:
    """A context manager: at its end, apps stop, consumers leave their groups, and topics and groups are deleted."""

    def __init__(self, cluster: Cluster, show: Callable[[LessonStep], None]) -> None:
        self.cluster = cluster
        self.brokers = cluster.brokers
        self.show = show
        self._prefix = f"penstock-learn-{uuid4().hex[:8]}"
        self._topics: list[str] = []
        self._groups: list[str] = []
        self._running = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._running.close()
        finally:
            if error is None:
                self._delete()
            else:  # the error of the lesson takes precedence
                with suppress(PenstockError):
                    self._delete()

    def _delete(self) -> None:
        existing = self.cluster.topics()
        self.cluster.delete_topics([name for name in existing if name.startswith(self._prefix)])
        for group in self._groups:
            self.cluster.delete_group(group)

    # Make what a lesson needs.

    def name(self, short: str) -> str:
        """A name for a topic that only an app creates; it is deleted at the end too."""
        return f"{self._prefix}-{short}"

    def topic(self, short: str, *, partitions: int = 1) -> str:
        self.cluster.create_topics([self.name(short)], partitions=partitions)
        return self.name(short)

    def group(self, short: str) -> str:
        self._groups.append(self.name(short))
        return self.name(short)

    def short(self, name: str) -> str:
        """The name without what makes it unique."""
        return name.removeprefix(f"{self._prefix}-")

    def produce(
        self, topic: str, values: Iterable[str], *, keys: Iterable[str] | None = None, partition: int | None = None
    ) -> None:
        texts = list(values)
        labels = [None] * len(texts) if keys is None else [key.encode() for key in keys]
        records = [ProducerRecord(topic, key, text.encode()) for key, text in zip(labels, texts, strict=True)]
        produce(self.cluster, records, partition=partition, progress=lambda _done: None)

    @contextmanager
    def running(self, app: App, *, on_event: Callable[..., Any] | None = None) -> Iterator[App]:
        """Run the app during the block."""
        app.start(brokers=self.brokers, on_event=on_event)
        try:
            yield app
        finally:
            app.stop()

    def catch_up(self, app: App) -> None:
        """Run the app until it has handled what is in its topics."""
        app.start(brokers=self.brokers, until_caught_up=True)
        try:
            app.wait()
        finally:
            app.stop()

    def keep(self, closing: Callable[[], Any]) -> None:
        """Call this at the end of the lesson; the last one first."""
        self._running.callback(closing)

    # Ask Kafka.

    def end(self, topic: str) -> int:
        """The end of the topic's only partition."""
        return self.cluster.end_offsets([(topic, 0)])[topic, 0]

    def committed(self, group: str, topic: str) -> int | None:
        """The committed offset of the topic's only partition."""
        return self.cluster.committed(group, [(topic, 0)]).get((topic, 0))

    def read(self, topic: str, **settings: str) -> list[Record]:
        """Every record of the topic, outside of any group."""
        return list(read_topic(self.brokers, topic, settings=settings))

    def described(self, group: str) -> GroupDescription:
        found = Groups(self.cluster).describe([group])[group]
        if isinstance(found, PenstockError):
            raise found
        return found

    def wait_for_members(self, group: str, topics: Sequence[str], *, members: int) -> list[DescribedMember]:
        """Wait until the group is stable, has so many members, and each partition has one owner; return the members."""
        tps = sorted(self.cluster.topic_partitions(topics))

        def look() -> list[DescribedMember] | None:
            found = self.described(group)
            owned = sorted(tp for member in found.members for tp in member.partitions)
            is_settled = found.state == "Stable" and len(found.members) == members and owned == tps
            return sorted(found.members, key=lambda each: (each.client, each.id)) if is_settled else None

        return self.wait_until(look, "the members of the group have all partitions")

    def wait_until(self, condition: Callable[[], T | None], what: str) -> T:
        """Wait until the condition returns something, and return it. ``what`` completes "It was not so that"."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise ServerError(
                    f"The lesson waited {_WAIT_SECONDS:.0f} s for this, in vain: {what}.",
                    hint=f"Check that the brokers at {self.brokers} are well, and start the lesson again.",
                )
            time.sleep(_PAUSE_SECONDS)
        return found


def partitions_by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(tps):
        found.setdefault(topic, []).append(number)
    return found
