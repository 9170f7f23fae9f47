"""The same few actions on every engine, so that one scenario can run on all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from conformance.handler_reports import Notes
from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, committed, of_kind, read_records, running, wait_for
from penstock import App, Record
from penstock import Producer as UsersProducer
from penstock.core.progress.reset_rules import Scenario, To
from penstock.core.reports.events import Event, Stopped
from penstock.kafka import Cluster, make_producer
from penstock.ops.offset_reset import Offsets, Scope
from penstock.testing import Bench

# Longer than any scenario takes.
_KIT_SECONDS = 30
NO_HEADERS: Mapping[str, bytes] = {}


class Stage(Protocol):
    """One app and its topics."""

    def produce(
        self,
        topic: str,
        *values: Any,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes] = NO_HEADERS,
    ) -> None: ...

    def produce_timed(self, topic: str, value: Any, *, key: bytes | None = None, **times: Any) -> None:
        """With ``not_before`` and ``expires``."""

    def catch_up(self) -> list[Event]:
        """Start, handle all records, stop cleanly; return the events, or raise the error that stopped the app."""

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Start, wait for the condition, stop cleanly."""

    def records(self, topic: str) -> list[Record]:
        """All records, sorted by partition and offset."""

    def committed(self, topic: str) -> dict[int, int]: ...

    def reset(self, topic: str, offset: int) -> None:
        """Like ``penstock offsets reset``, while the app is stopped."""


class Driver(Protocol):
    """An engine under test.

    Handlers may run in other processes, so scenarios look at their outputs or at ``notes``.
    """

    reports_records: bool  # whether it reports events of single records
    commits_batches: bool  # whether a batch of records is committed as a whole or not at all
    sets_the_clock: bool  # whether no time passes between producing a record and the start of the app

    def group(self) -> str: ...
    def topic(self, partitions: int = 1) -> str: ...
    def add_partitions(self, topic: str, partitions: int) -> None: ...
    def notes(self) -> Notes: ...
    def stage(self, app: App) -> Stage: ...


class _NoteTaker:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def notes(self) -> Notes:
        return Notes(self._folder / uuid4().hex)


class KitDriver(_NoteTaker):
    reports_records = True
    commits_batches = False
    sets_the_clock = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._partitions: dict[str, int] = {}

    def group(self) -> str:
        return "group"

    def topic(self, partitions: int = 1) -> str:
        name = f"topic-{len(self._partitions)}"
        self._partitions[name] = partitions
        return name

    def add_partitions(self, topic: str, partitions: int) -> None:
        raise NotImplementedError("a bench cannot add partitions to a topic")

    def stage(self, app: App) -> Stage:
        return _KitStage(app, self._partitions)


class _KitStage:
    def __init__(self, app: App, partitions: Mapping[str, int]) -> None:
        self._bench = Bench(app, partitions=partitions)

    def produce(
        self,
        topic: str,
        *values: Any,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes] = NO_HEADERS,
    ) -> None:
        for value in values:
            self._bench.produce(topic, value, key=key, partition=partition, headers=headers)

    def produce_timed(self, topic: str, value: Any, *, key: bytes | None = None, **times: Any) -> None:
        self._bench.produce(topic, value, key=key, **times)

    def catch_up(self) -> list[Event]:
        before = len(self._bench.events)
        self._bench.advance(_KIT_SECONDS)
        self._bench.stop()
        return self._bench.events[before:]

    def run_until(self, condition: Callable[[], bool]) -> None:
        for _ in range(_KIT_SECONDS):
            self._bench.advance("1s")
        assert condition()
        self._bench.stop()

    def records(self, topic: str) -> list[Record]:
        return sorted(self._bench.records(topic), key=lambda record: (record.partition, record.offset))

    def committed(self, topic: str) -> dict[int, int]:
        return self._bench.committed(topic)

    def reset(self, topic: str, offset: int) -> None:
        raise NotImplementedError("no other tool can set the offsets of a bench")


class BrokerDriver(_NoteTaker):
    """Topics and groups on a real broker. Subclasses choose the engine."""

    sets_the_clock = False

    def __init__(self, brokers: str, cluster: Cluster, make_topic: MakeTopic, folder: Path) -> None:
        super().__init__(folder)
        self.brokers = brokers
        self.cluster = cluster
        self._make_topic = make_topic
        self._producer: Producer | None = None

    def group(self) -> str:
        return f"group-{uuid4().hex[:8]}"

    def topic(self, partitions: int = 1) -> str:
        return self._make_topic(partitions)

    def add_partitions(self, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.brokers})
        for future in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result()
        wait_for(lambda: len(self.cluster.topic_partitions([topic])) == partitions, "the partitions")
        self._producer = None

    def producer(self) -> Producer:
        """One producer for all calls. An older one may not know partitions that were added."""
        self._producer = self._producer or make_producer(self.brokers, settings={})
        return self._producer


class LocalDriver(BrokerDriver):
    reports_records = True
    commits_batches = False

    def stage(self, app: App) -> Stage:
        return _LocalStage(app, self)


class OpenDriver(LocalDriver):
    """The same with self-managed members."""

    def stage(self, app: App) -> Stage:
        app._handlers[:] = [replace(handler, assignor="topic-spread") for handler in app.declared_handlers]
        return super().stage(app)


class BrokerStage:
    def __init__(self, app: App, driver: BrokerDriver) -> None:
        self.app = app
        self.brokers = driver.brokers
        self._cluster = driver.cluster
        self._driver = driver

    def produce(
        self,
        topic: str,
        *values: Any,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes] = NO_HEADERS,
    ) -> None:
        tp: dict[str, Any] = {} if partition is None else {"partition": partition}
        producer = self._driver.producer()
        for value in values:
            encoded = value if isinstance(value, bytes) or value is None else str(value).encode()
            producer.produce(topic, value=encoded, key=key, headers=dict(headers), **tp)
        assert producer.flush(WAIT_SECONDS) == 0

    def produce_timed(self, topic: str, value: Any, *, key: bytes | None = None, **times: Any) -> None:
        with UsersProducer(self.brokers) as producer:
            producer.send(topic, value, key=key, **times)

    def records(self, topic: str) -> list[Record]:
        found = read_records(self.brokers, topic)
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def committed(self, topic: str) -> dict[int, int]:
        return committed(self._cluster, self.app.name, topic)

    def reset(self, topic: str, offset: int) -> None:
        offsets = Offsets(self._cluster)
        scope, scenario = Scope({topic: None}), Scenario(To.OFFSET, offset)
        offsets.carry_out(offsets.plan_reset([self.app.name], scope, scenario, reason="a scenario"))


class _LocalStage(BrokerStage):
    def catch_up(self) -> list[Event]:
        return catch_up(self.app, self.brokers, per_record=True)

    def run_until(self, condition: Callable[[], bool]) -> None:
        with running(self.app, self.brokers) as member:
            wait_for(condition, "the scenario's condition")
        if member.error is not None:
            raise member.error


def counts(events: list[Event]) -> tuple[int, int, int, int]:
    """The numbers that the app reports when it stops: read, written, dead-lettered and skipped."""
    (stopped,) = of_kind(events, Stopped)
    return stopped.read, stopped.written, stopped.dead_lettered, stopped.skipped
