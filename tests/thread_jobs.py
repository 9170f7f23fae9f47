"""Runs the slices of handlers on threads of this process in place of Spark jobs.

Driver, tasks and broker are real; a test needs no Spark session.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest

from penstock import App
from penstock import spark as engine
from penstock.core.progress.slices import Slice
from penstock.core.reports.events import Event
from penstock.spark.driver import spark_runner
from penstock.spark.driver.handler_driver import HandlerDriver
from penstock.spark.driver.packing import pack
from penstock.spark.driver.slice_jobs import JobEnded
from penstock.spark.tasks.run_slices import Membership, run_slices
from penstock.spark.tasks.slice_result import SliceResult

SLOTS = 2


class ThreadJobs:
    def __init__(self, packed: bytes, ended: "SimpleQueue[JobEnded]") -> None:
        self._packed = packed
        self._ended = ended
        self._slots = threading.Semaphore(SLOTS)

    def start(self, tasks: Sequence[Sequence[Slice]], membership: Membership) -> None:
        threading.Thread(target=self._run, args=(tasks, membership), daemon=True).start()

    def cancel(self) -> None:
        """Python cannot cancel a thread: it ends later, and its result is ignored."""

    def _run(self, tasks: Sequence[Sequence[Slice]], membership: Membership) -> None:
        slices = [each for task in tasks for each in task]
        try:
            results = []
            for task in tasks:
                with self._slots:
                    results += [
                        SliceResult.unpacked(each.packed()) for each in run_slices(self._packed, task, membership)
                    ]
            self._ended.put(JobEnded(slices, results))
        except Exception as error:  # noqa: BLE001 - as a Spark job reports it
            self._ended.put(JobEnded(slices, error=error))


@contextmanager
def no_spark(patch: pytest.MonkeyPatch) -> Iterator[None]:
    @contextmanager
    def session(*_: object) -> Iterator[None]:
        yield None

    def start(driver: HandlerDriver, _session: object, brokers: str, *, per_record: bool) -> None:
        packed = pack(driver.handler, brokers, is_local=True, per_record=per_record)
        driver.start(lambda ended: ThreadJobs(packed, ended), slots=SLOTS)  # type: ignore[arg-type, return-value]

    with patch.context() as inside:
        inside.setattr(spark_runner, "_session", session)
        inside.setattr(spark_runner, "_start", start)
        yield


def run_on_threads(
    app: App, brokers: str, stop: threading.Event | None = None, *, patch: pytest.MonkeyPatch, **options: Any
) -> list[Event]:
    """Run an app as on Spark; returns what it reported."""
    seen: list[Event] = []
    emit: Callable[[Event], None] = seen.append
    with no_spark(patch):
        engine.run(app, brokers=brokers, emit=emit, stop=stop or threading.Event(), **options)
    return seen
