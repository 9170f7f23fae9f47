"""Stops: clean ones between batches, Ctrl+C, and kill -9."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest
from pyspark.sql import SparkSession

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, of_kind, produce, read_values, wait_for
from penstock import App
from penstock import spark as engine
from penstock.core.reports import events
from penstock.kafka import Cluster

RECORDS = 1_000

# The handler is slow enough that a batch lasts a while.
PROGRAM = """
import signal, sys, threading, time
from penstock import App
from penstock.core.reports.event_json import to_json
from penstock.spark import run

brokers, group, topic = sys.argv[1:]
app = App(group)

@app.consume(topic, to=f"{group}.out", max_micro_batch=200)
def slow(value: str) -> str:
    time.sleep(0.005)
    return value

stop = threading.Event()
signal.signal(signal.SIGINT, lambda *_: stop.set())
run(app, brokers=brokers, emit=lambda event: print(to_json(event, 0), flush=True), stop=stop)
"""


def slow_app(group: str, source: str) -> App:
    """The app of the program, for a restart inside the test."""
    app = App(group)

    @app.consume(source, to=f"{group}.out", max_micro_batch=200)
    def slow(value: str) -> str:
        return value

    return app


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


class Driver:
    """The program in a separate process group, as a terminal starts it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, program, *arguments], stdout=out, stderr=err, start_new_session=True
            )
        self._family: set[psutil.Process] = set()

    def wait_for_batches(self, count: int) -> None:
        wait_for(
            lambda: len(self.reported("batch_finished")) >= count or self.process.poll() is not None,
            f"{count} finished batches",
        )
        assert self.process.poll() is None, self._err.read_text()
        self._family = set(psutil.Process(self.process.pid).children(recursive=True))

    def reported(self, name: str) -> list[dict[str, object]]:
        # The last line may be half written.
        lines = [line for line in self._out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [event for line in lines if (event := msgspec.json.decode(line))["event"] == name]

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def said(self) -> str:
        return self._err.read_text()

    def left_behind(self) -> list[psutil.Process]:
        """The JVM and the Python workers that still run after a while."""
        assert len(self._family) >= 3, "a JVM, the workers' daemon and a worker run"
        _, alive = psutil.wait_procs(self._family, timeout=WAIT_SECONDS)
        return alive


@pytest.fixture
def start_driver(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def start(*arguments: str) -> Driver:
        drivers.append(Driver(tmp_path, *arguments))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.process.kill()
        driver.process.wait()


@contextmanager
def in_background(run: Callable[[threading.Event], None]) -> Iterator[threading.Event]:
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(stop,), daemon=True)
    thread.start()
    yield stop
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive(), "the engine did not stop"


def test_a_stop_in_the_middle_finishes_the_batch_and_a_restart_repeats_nothing(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, spark: SparkSession, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition, RECORDS, 2), partition=partition)
    seen: list[events.Event] = []
    app = slow_app(group, source)
    with in_background(
        lambda stop: engine.run(app, brokers=brokers, emit=seen.append, stop=stop, session=spark)
    ) as stop:
        wait_for(lambda: of_kind(seen, events.BatchFinished), "a batch")
        stop.set()
    (stopped,) = of_kind(seen, events.Stopped)
    assert 200 <= stopped.read < RECORDS
    assert [event.reason for event in of_kind(seen, events.Stopping)] == ["asked to"]
    assert not of_kind(seen, events.Error)
    assert len(outputs(brokers, group)) == stopped.written == sum(committed(cluster, group, source).values())
    catch_up(app)
    assert outputs(brokers, group) == list(range(RECORDS))


def test_records_that_come_later_are_handled_too_and_an_idle_app_stops_at_once(
    brokers: str, group: str, make_topic: MakeTopic, spark: SparkSession
) -> None:
    source = make_topic()
    seen: list[events.Event] = []
    app = slow_app(group, source)
    with in_background(
        lambda stop: engine.run(app, brokers=brokers, emit=seen.append, stop=stop, session=spark)
    ) as stop:
        for expected in (3, 6):
            produce(brokers, source, range(3))
            wait_for(lambda: sum(b.read for b in of_kind(seen, events.BatchFinished)) == expected, "the records")  # noqa: B023
        stop.set()
    assert [event.offset for event in of_kind(seen, events.Committed)][-1] == 6
    assert of_kind(seen, events.Stopped)[0].read == 6


def test_a_batch_that_outlasts_the_drain_timeout_is_cancelled_and_repeated(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, spark: SparkSession, tmp_path: Path
) -> None:
    source, entered = make_topic(), str(tmp_path / "entered")
    app = App(group)

    @app.consume(source, drain_timeout="500ms")
    def stuck(value: str) -> None:
        import time  # noqa: PLC0415 - in the worker
        from pathlib import Path  # noqa: PLC0415

        Path(entered).touch()
        time.sleep(600)

    produce(brokers, source, [1])
    seen: list[events.Event] = []
    with in_background(
        lambda stop: engine.run(app, brokers=brokers, emit=seen.append, stop=stop, session=spark)
    ) as stop:
        wait_for(Path(entered).exists, "the handler")
        stop.set()
    (error,) = of_kind(seen, events.Error)
    assert "drain_timeout=0.5s" in error.reason
    assert not error.fatal
    assert of_kind(seen, events.Stopped)[0].read == 0
    assert committed(cluster, group, source) == {}


def test_ctrl_c_in_the_middle_of_a_batch_stops_cleanly_and_leaves_nothing_behind(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, start_driver: Callable[..., Driver]
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition, RECORDS, 2), partition=partition)
    driver = start_driver(brokers, group, source)
    driver.wait_for_batches(1)
    driver.interrupt()
    assert driver.process.wait(WAIT_SECONDS) == 0
    assert driver.said() == ""
    (stopped,) = driver.reported("stopped")
    assert len(outputs(brokers, group)) == stopped["written"]
    assert not driver.left_behind()
    catch_up(slow_app(group, source))
    assert outputs(brokers, group) == list(range(RECORDS))


def test_after_kill_9_nothing_is_lost_and_no_process_stays(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, start_driver: Callable[..., Driver]
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition, RECORDS, 2), partition=partition)
    driver = start_driver(brokers, group, source)
    driver.wait_for_batches(2)
    driver.process.kill()
    driver.process.wait()
    assert not driver.left_behind()
    catch_up(slow_app(group, source))
    repeated = len(outputs(brokers, group)) - RECORDS
    assert sorted(set(outputs(brokers, group))) == list(range(RECORDS))
    assert 0 <= repeated <= 200, "at most the batch in progress is repeated"
