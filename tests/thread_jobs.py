"""Runs the slices of handlers on threads of this process in place of Spark jobs.

Driver, tasks and broker are real; a test needs no Spark session.
"""

import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import Any

import pytest

from kafka_helpers import WAIT_SECONDS, of_kind
from penstock import App
from penstock import spark as engine
from penstock.core.progress.slices import Slice
from penstock.core.reports import events
from penstock.core.reports.events import Event
from penstock.spark.driver import spark_runner
from penstock.spark.driver.handler_driver import HandlerDriver
from penstock.spark.driver.packing import pack
from penstock.spark.driver.slice_jobs import JobEnded
from penstock.spark.tasks.run_slices import DriverMembership, run_slices
from penstock.spark.tasks.slice_result import SliceResult

SLOTS = 2


class ThreadJobs:
    """With several ``attempts``, each task runs so often at once, as with speculation: the first to succeed counts."""

    def __init__(self, packed: bytes, ended: "SimpleQueue[JobEnded]", attempts: int = 1) -> None:
        # Bytes behind the end of a pickle are ignored: they make each attempt a Python worker of its own.
        self._workers = [packed + b"." * number for number in range(attempts)]
        self._ended = ended
        self._slots = threading.Semaphore(SLOTS)

    def start(self, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> None:
        threading.Thread(target=self._run, args=(tasks, membership), daemon=True).start()

    def cancel(self) -> None:
        """Python cannot cancel a thread: it ends later, and its result is ignored."""

    def _run(self, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> None:
        slices = [each for task in tasks for each in task]
        try:
            results = []
            for task in tasks:
                with self._slots:
                    results += self._first_success(task, membership)
            self._ended.put(JobEnded(slices, results))
        except Exception as error:  # noqa: BLE001 - the driver judges it
            self._ended.put(JobEnded(slices, error=error))

    def _first_success(self, task: Sequence[Slice], membership: DriverMembership) -> list[SliceResult]:
        ends: SimpleQueue[list[SliceResult] | Exception] = SimpleQueue()

        def attempt(packed: bytes) -> None:
            try:
                ends.put([SliceResult.unpacked(each.packed()) for each in run_slices(packed, task, membership)])
            except Exception:  # noqa: BLE001 - as a Spark job reports it
                ends.put(RuntimeError(f"An exception was thrown from the Python worker.\n{traceback.format_exc()}"))

        for packed in self._workers:
            threading.Thread(target=attempt, args=(packed,), daemon=True).start()
        # Spark kills the others. A thread cannot be killed, so wait: later it would fence the tasks of the next slice.
        ended = [ends.get() for _ in self._workers]
        for found in ended:
            if not isinstance(found, Exception):
                return found
        raise next(each for each in ended if isinstance(each, Exception))


@contextmanager
def no_spark(patch: pytest.MonkeyPatch, *, attempts: int = 1) -> Iterator[None]:
    @contextmanager
    def session(*_: object) -> Iterator[None]:
        yield None

    def start(driver: HandlerDriver, _session: object, brokers: str, *, per_record: bool) -> None:
        packed = pack(driver.handler, brokers, is_local=True, per_record=per_record)
        driver.start(lambda ended: ThreadJobs(packed, ended, attempts), slots=SLOTS, per_record=per_record)  # type: ignore[arg-type, return-value]

    with patch.context() as inside:
        inside.setattr(spark_runner, "_session", session)
        inside.setattr(spark_runner, "_start", start)
        yield


def run_on_threads(
    app: App,
    brokers: str,
    stop: threading.Event | None = None,
    *,
    patch: pytest.MonkeyPatch,
    attempts: int = 1,
    **options: Any,
) -> list[Event]:
    """Run an app as on Spark; returns what it reported."""
    seen: list[Event] = []
    emit: Callable[[Event], None] = seen.append
    with no_spark(patch, attempts=attempts):
        engine.run(app, brokers=brokers, emit=emit, stop=stop or threading.Event(), **options)
    return seen


class OnThreads:
    """An app in the background. It needs ``no_spark`` around it."""

    def __init__(self, app: App, brokers: str) -> None:
        self.events: list[Event] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=lambda: engine.run(app, brokers=brokers, emit=self.events.append, stop=self._stop), daemon=True
        )
        self._thread.start()

    def read(self) -> int:
        return sum(batch.read for batch in of_kind(self.events, events.BatchFinished))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "the engine did not stop"
        assert not [error for error in of_kind(self.events, events.Error) if error.fatal]


Start = Callable[[App], AbstractContextManager[OnThreads]]


@contextmanager
def started(app: App, *, brokers: str, patch: pytest.MonkeyPatch) -> Iterator[OnThreads]:
    with no_spark(patch):
        background = OnThreads(app, brokers)
        yield background
        background.stop()
