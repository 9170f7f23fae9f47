"""Produces to, reads from and runs apps on a real cluster, for integration tests."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, TypeVar

from penstock import App, Record
from penstock import engine as local
from penstock.core.reports.events import Event
from penstock.errors import PenstockError
from penstock.kafka import Cluster, make_producer
from penstock.kafka.read.read_records import read_topic

# Long enough for a slow and busy machine. A test that waits longer fails.
WAIT_SECONDS = 400.0
# Some tests act while a run is in progress. They need the last of these to be short.
_FIRST_PAUSE_SECONDS, _PAUSE_GROWTH, _LONGEST_PAUSE_SECONDS = 0.01, 1.2, 0.05

# With this, members notice a rebalance soon, and keep their session on a busy machine.
QUICK = {"heartbeat.interval.ms": 300, "session.timeout.ms": 60_000}

MakeTopic = Callable[..., str]
CatchUp = Callable[..., list[Event]]


def produce(brokers: str, topic: str, values: Iterable[Any], *, partition: int = 0, key: bytes | None = None) -> None:
    """Write values (bytes, or their texts) to one partition in order, and wait for all acknowledgements."""
    producer = make_producer(brokers, settings={})
    failures: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        encoded = value if isinstance(value, bytes) or value is None else str(value).encode()
        producer.produce(topic, value=encoded, key=key, partition=partition, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(WAIT_SECONDS) == 0
    assert not failures


def read_values(brokers: str, topic: str) -> list[bytes | None]:
    return [record.value for record in read_topic(brokers, topic)]


def read_records(brokers: str, topic: str) -> list[Record]:
    return list(read_topic(brokers, topic))


def catch_up(app: App, brokers: str, **options: Any) -> list[Event]:
    """Run the app on the local engine until it has caught up; returns what it reported."""
    events: list[Event] = []
    local.run(app, brokers=brokers, emit=events.append, stop=threading.Event(), until_caught_up=True, **options)
    return events


E = TypeVar("E", bound=Event)


def of_kind(events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def lag(cluster: Cluster, group: str, topic: str) -> int:
    return cluster.lag(group, [topic])


def committed(cluster: Cluster, group: str, topic: str) -> dict[int, int]:
    tps = cluster.topic_partitions([topic])
    try:
        # The offsets of a committed transaction may take a moment to appear.
        found = cluster.stable_offsets(group, tps)
    except PenstockError:  # a transaction is open, but its producer has ended
        found = cluster.committed(group, tps)
    return {partition: offset for (_, partition), offset in found.items()}


def wait_for(condition: Callable[[], Any], what: str, *, seconds: float = WAIT_SECONDS) -> Any:
    """Wait until the condition holds, and return its value.

    Many conditions ask a broker. The pauses grow, so that long waits use little processor time.
    """
    deadline = monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while not (value := condition()):
        assert monotonic() < deadline, f"still waiting after {seconds:g} s for {what}"
        sleep(pause)
        pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE_SECONDS)
    return value


class Running:
    """An app on the local engine in the background."""

    def __init__(self, app: App, brokers: str) -> None:
        self.events: list[Event] = []
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(app, brokers), daemon=True)
        self._thread.start()

    def _run(self, app: App, brokers: str) -> None:
        try:
            local.run(app, brokers=brokers, emit=self.events.append, stop=self._stop, per_record=True)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def stop(self) -> None:
        """Ask for a clean stop and wait for it."""
        self._stop.set()
        self.join()

    def join(self) -> None:
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "the engine did not stop"

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()


@contextmanager
def running(app: App, brokers: str) -> Iterator[Running]:
    """The app runs inside the block and is stopped cleanly after it."""
    background = Running(app, brokers)
    try:
        yield background
    finally:
        background.stop()
