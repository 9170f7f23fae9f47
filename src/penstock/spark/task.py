"""Runs the handler on the records of a task, in Spark's Python workers.

A task has records of one partition (with ``scale="cpu"``, of several). They go to lanes and from there to workers, as
in the local engine. The task yields outputs and dead letters as rows for the sink.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
from pyspark import cloudpickle

from penstock import errors
from penstock.app import Handler
from penstock.app.tuned_gc import tuned_gc
from penstock.app.work import Work
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import TopicPartition
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.bundle_size import BundleSize
from penstock.core.scheduling.effects import Result
from penstock.core.scheduling.lanes import Epoch
from penstock.core.scheduling.schedule import Schedule
from penstock.errors import ConfigError, HandlerError, PenstockError
from penstock.serde import make_portable
from penstock.spark.arrow_columns import ROWS, Intake
from penstock.spark.settling import Settlement
from penstock.spark.workers import Workers, make_workers

# How often the task collects outcomes of workers that are in the middle of a bundle. If a worker takes longer than
# this, other workers get the rest of its bundle.
_COLLECT_SECONDS = 0.05
# A quarter of max_in_flight has to be free before the task takes in more records, unless workers would have to wait.
_ROOM_SHARE = 4


class HaltedTaskError(Exception):
    """Carries a PenstockError to the driver.

    Spark gives the driver only the printed traceback of an error in a Python worker. So the error is part of that text,
    as JSON, which keeps it on one line.
    """

    def __init__(self, error: PenstockError) -> None:
        super().__init__(f"{json.dumps([type(error).__name__, error.problem, error.hint, error.traceback])} :halted")

    @staticmethod
    def find(text: str) -> PenstockError | None:
        """Return the error in this text; None if there is none."""
        found = re.search(rf"{HaltedTaskError.__name__}: (\[.*\]) :halted", text)
        if found is None:
            return None
        name, problem, hint, *traceback = json.loads(found[1])  # errors of Spark expressions have no traceback
        kind: type[PenstockError] = getattr(errors, name)
        return kind(problem, hint=hint, traceback="".join(traceback))


def for_workers(handler: Handler) -> Handler:
    """Return the handler as Spark sends it to workers: without settings, which hold secrets and are not needed."""
    packed = replace(handler, settings={})
    for hint in (*packed.signature.hints.values(), packed.value, packed.key):
        make_portable(hint)
    try:
        cloudpickle.dumps(packed)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ConfigError(
            f"Handler {handler.name} cannot be sent to Spark's Python workers: {error}.",
            hint="Create what it holds (files, locks, connections) at module level: then each worker creates its own.",
        ) from error
    return packed


def handle_task(
    handler: Handler,
    batches: Iterable[pa.RecordBatch],
    *,
    count: Callable[[Counts], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """Yield rows for the outputs and dead letters of these batches, and call ``count`` with the counts.

    If it ends early, because of an error or because the caller stops taking rows, no record stays in progress.
    """
    task = _Task(handler, make_workers(handler, sleep), clock)
    try:
        with tuned_gc(), closing(task):
            for rows in task.rows(Intake(batches)):
                count(task.settled.take_counts())
                yield rows
            count(task.settled.take_counts())
    except HandlerError as error:
        raise HaltedTaskError(error) from None


class _Task:
    """Moves records from the intake to workers, and outcomes into rows, by the rules of ``core``."""

    def __init__(self, handler: Handler, workers: Workers, clock: Callable[[], float]) -> None:
        self._handler = handler
        self._workers = workers
        self._clock = clock
        self._schedule = Schedule(
            order=handler.order,
            null_keys_in_order=handler.null_keys_in_order,
            concurrency=workers.width + workers.ahead,
            batch=handler.batch,
            linger=handler.linger,
            offset_of=ROWS.offset_of,
            key_of=ROWS.key_of,
        )
        self._epochs: dict[TopicPartition, Epoch] = {}
        self._bundle_size = BundleSize()
        self._works: set[Work] = set()
        self._collect_at = 0.0
        self._in_flight = 0
        self.settled = Settlement(handler)
        # A breaker may stop the task instead of writing a dead letter, so the lane waits for the decision.
        self._has_dead_letter = handler.dead_letter is not None and handler.breaker is None

    def rows(self, intake: Intake) -> Iterator[pa.RecordBatch]:
        outgoing = self.settled.outgoing
        while True:
            self._take_in(intake)
            self._hand_out()
            if not self._in_flight and intake.is_empty:
                break
            self._report(self._workers.wait(self._patience(intake)))
            if outgoing.is_full:
                yield outgoing.take_batch()
        if outgoing:
            yield outgoing.take_batch()

    def close(self) -> None:
        """Start no more records. Wait up to drain_timeout for records in progress, and drop their outcomes."""
        for epoch in self._epochs.values():
            epoch.stop()
        self._workers.close(self._handler.drain_timeout)

    def _take_in(self, intake: Intake) -> None:
        if not self._wants_more(intake):
            return
        portion = intake.take(self._handler.max_in_flight - self._in_flight)
        for tp, rows in portion.by_tp().items() if portion else ():
            if tp not in self._epochs:
                # Its tracker stays empty, because Spark commits: there is no offset map to keep small.
                self._epochs[tp] = Epoch(tp, len(self._epochs), Tracker(None), None)
            self._in_flight += len(rows)
            self._schedule.deliver(self._epochs[tp], rows)
        if intake.is_empty:
            self._schedule.stop_lingering()

    def _wants_more(self, intake: Intake) -> bool:
        room = self._handler.max_in_flight - self._in_flight
        # Taking in a few records at a time costs much more than taking in many. And the task must not wait for input
        # while it has records for workers.
        enough = intake.at_hand and room * _ROOM_SHARE >= self._handler.max_in_flight
        return room > 0 and (enough or not self._schedule.has_ready) and not intake.is_empty

    def _hand_out(self) -> None:
        clock, size = self._clock, self._bundle_size.size
        self._schedule.mix_or_split(self._epochs.values(), size)
        bundles = self._schedule.take(clock(), size)
        works = [Work(runs, has_dead_letter=self._has_dead_letter, clock=clock) for runs in bundles]
        self._works.update(works)
        self._workers.submit(works)

    def _patience(self, intake: Intake) -> float | None:
        """Return how long the task can wait for its workers; None if nothing else is due."""
        if self._wants_more(intake):
            return 0
        now = self._clock()
        due = [at for at in (self._schedule.next_due(), self._collect_at if self._works else None) if at is not None]
        return max(0.0, min(due) - now) if due else None

    def _report(self, ended: list[Work]) -> None:
        results: list[Result] = []
        for work in ended:
            self._works.discard(work)
            self._schedule.release()
            self._bundle_size.observe(work.attempted, work.seconds)
            results += work.collect()
        now = self._clock()
        if self._works and now >= self._collect_at:
            self._collect_at = now + _COLLECT_SECONDS
            results += self._collect(now)
        self._settle(results, now)

    def _collect(self, now: float) -> list[Result]:
        """Return outcomes of workers that are still busy, and take back the records that slow ones have not started."""
        results: list[Result] = []
        for work in self._works:
            results += work.collect()
            if work.began is not None and now - work.began > _COLLECT_SECONDS:
                results += [(run, (), True) for run in work.take_back()]
        return results

    def _settle(self, results: list[Result], now: float) -> None:
        for run, outcomes, last in results:
            rows = self._schedule.collect(run, len(outcomes))
            retries = self.settled.settle(run.epoch, rows, outcomes, now)
            self._in_flight -= len(rows) - len(retries)
            self._schedule.put_back(run, retries, last=last)
