"""The same few actions on the testing kit and on a real broker, so that one scenario can be played on both."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from uuid import uuid4

from bed import MakeTopic, catch_up, committed, of_kind, read_records, running, wait_for
from penstock import App, Record
from penstock.core.events import Event, Stopped
from penstock.kafka import Cluster, make_producer
from penstock.testing import Bench

# More than any scenario waits in all.
_KIT_SECONDS = 30


class Stage(Protocol):
    """One app and its topics."""

    def produce(self, topic: str, *values: Any, key: bytes | None = None, partition: int | None = None) -> None: ...

    def catch_up(self) -> list[Event]:
        """Start, finish all that is there, stop cleanly; raises what stops the app. Returns what it reported."""

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Start, wait for the condition, stop cleanly."""

    def records(self, topic: str) -> list[Record]:
        """By partition and offset."""

    def committed(self, topic: str) -> dict[int, int]: ...


class Driver(Protocol):
    def group(self) -> str: ...
    def topic(self, partitions: int = 1) -> str: ...
    def stage(self, app: App) -> Stage: ...


class KitDriver:
    def __init__(self) -> None:
        self._partitions: dict[str, int] = {}

    def group(self) -> str:
        return "group"

    def topic(self, partitions: int = 1) -> str:
        name = f"topic-{len(self._partitions)}"
        self._partitions[name] = partitions
        return name

    def stage(self, app: App) -> Stage:
        return _KitStage(app, self._partitions)


class _KitStage:
    def __init__(self, app: App, partitions: Mapping[str, int]) -> None:
        self._bench = Bench(app, partitions=partitions)

    def produce(self, topic: str, *values: Any, key: bytes | None = None, partition: int | None = None) -> None:
        for value in values:
            self._bench.produce(topic, value, key=key, partition=partition)

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


class RealDriver:
    def __init__(self, brokers: str, cluster: Cluster, make_topic: MakeTopic) -> None:
        self._brokers = brokers
        self._cluster = cluster
        self._make_topic = make_topic

    def group(self) -> str:
        return f"group-{uuid4().hex[:8]}"

    def topic(self, partitions: int = 1) -> str:
        return self._make_topic(partitions)

    def stage(self, app: App) -> Stage:
        return _RealStage(app, self._brokers, self._cluster)


class _RealStage:
    def __init__(self, app: App, brokers: str, cluster: Cluster) -> None:
        self._app = app
        self._brokers = brokers
        self._cluster = cluster
        self._producer = make_producer(brokers, settings={})

    def produce(self, topic: str, *values: Any, key: bytes | None = None, partition: int | None = None) -> None:
        place: dict[str, Any] = {} if partition is None else {"partition": partition}
        for value in values:
            encoded = value if isinstance(value, bytes) or value is None else str(value).encode()
            self._producer.produce(topic, value=encoded, key=key, **place)
        assert self._producer.flush(60) == 0

    def catch_up(self) -> list[Event]:
        return catch_up(self._app, self._brokers, per_record=True)

    def run_until(self, condition: Callable[[], bool]) -> None:
        with running(self._app, self._brokers) as member:
            wait_for(condition, "the scenario's condition")
        if member.error is not None:
            raise member.error

    def records(self, topic: str) -> list[Record]:
        found = read_records(self._brokers, topic)
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def committed(self, topic: str) -> dict[int, int]:
        return committed(self._cluster, self._app.name, topic)


def counts(events: list[Event]) -> tuple[int, int, int, int]:
    """Read, written, dead-lettered and skipped, as the app says when it has stopped."""
    (stopped,) = of_kind(events, Stopped)
    return stopped.read, stopped.written, stopped.dead_lettered, stopped.skipped
