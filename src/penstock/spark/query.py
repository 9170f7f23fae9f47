"""Runs one handler: starts its streaming query, commits offsets to the group, emits events.

A query that fails for a reason that may pass gets a new plan and is started again.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from queue import SimpleQueue

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.core.failures.restarts import Restarts
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.errors import PenstockError
from penstock.spark.batch_barrier import Batch
from penstock.spark.batches import Batches
from penstock.spark.finished import above
from penstock.spark.internals import JvmError
from penstock.spark.lagging import report_lag
from penstock.spark.planning import Plan
from penstock.spark.resume_offsets import Offsets
from penstock.spark.source import sink_options
from penstock.spark.spark_errors import QueryFailure, planning_failure, query_failure
from penstock.spark.stream import Stream

# How often the driver checks whether a topic was recreated.
_LOOK_SECONDS = 1.0


class HandlerQuery:
    """Call ``start``, then ``advance`` until ``is_over``. ``error`` is set if the handler failed.

    Only the driver's loop, one thread, calls these methods. Spark's stream thread runs ``Batches`` and ``Stream``.
    ``replan`` makes a new plan for a restart.
    """

    def __init__(
        self, session: SparkSession, plan: Plan, emit: Callable[[events.Event], None], *, replan: Callable[[], Plan]
    ) -> None:
        self._session = session
        self._plan = plan
        self._replan = replan
        self._handler = plan.handler
        self._emit = emit
        self._restarts = Restarts(plan.handler.restart)
        self._size = plan.size
        self._unconfirmed: list[Batch] = []
        self._totals = Counts()
        self._reached: Offsets = {}
        self._batches: Batches | None = None
        self._stream: Stream | None = None
        self._due = 0.0
        self._again: str | None = None
        self._deadline: float | None = None
        self._looked = self._began = time.monotonic()
        self.is_over = False
        self.error: PenstockError | None = None

    def start(self) -> None:
        self._begin(self._plan)
        topics = tuple(dict.fromkeys(topic for topic, _ in self._plan.begin)) or self._handler.topics
        self._emit(
            events.Started(
                engine="spark",
                group=self._handler.group,
                handler=self._handler.name,
                topics=topics,
                lag=self._plan.lag,
            )
        )

    def advance(self) -> None:
        """Commit and report batches that finished since the last call; restart or end the query if it is time."""
        if self.is_over:
            return
        if self._stream is None or self._batches is None:
            self._begin_again()
            return
        # Read before the finished batches are taken: a batch that ends in between then still counts as busy.
        busy = self._batches.busy
        self._confirm_batches(self._batches)
        if not self._stream.is_active:
            self._ended(self._stream, self._batches)
        elif self._deadline is not None and time.monotonic() > self._deadline:
            self._cancel(self._stream)
        elif self._deadline is None and self._again is None:
            self._look(self._stream, self._batches)
        elif not busy and not self._unconfirmed:
            self._stream.stop()
            self._ended(self._stream, self._batches)

    def stop(self, reason: str) -> None:
        """Make the running batch the last one; ``advance`` ends the query after it."""
        if self._deadline is None and not self.is_over:
            self._emit(events.Stopping(group=self._handler.group, handler=self._handler.name, reason=reason))
            if self._batches is not None:
                self._batches.close()
            self._deadline = time.monotonic() + self._handler.drain_timeout

    # From one query of Spark to the next.

    def _begin(self, plan: Plan) -> None:
        self._plan = plan
        self._reached = dict(plan.begin)
        self._batches = Batches(self._session, plan.stage, sink_options(plan.clients), exactly_once=plan.exactly_once)
        self._stream = Stream(self._session, plan, self._batches, self._size)

    def _begin_again(self) -> None:
        if self._deadline is not None:
            self._end(None)
        elif time.monotonic() >= self._due:
            try:
                self._begin(self._replan())
            except PenstockError as error:
                self._failed(planning_failure(error))
            except (PySparkException, JvmError) as error:
                self._failed(query_failure(error, self._handler))

    def _look(self, stream: Stream, batches: Batches) -> None:
        """Check a healthy query: has it caught up, and does it need a restart (batch size, recreated topic)?"""
        if self._targets_reached():
            self.stop("caught up")
            return
        if stream.outgrown:
            self._again = f"batches of {stream.size.size:,} offsets fit better"
        elif time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            renewed = self._plan.cluster_view.renewed()
            self._again = f"{', '.join(sorted(renewed))} was recreated" if renewed else None
        if self._again is not None:
            batches.close()

    def _ended(self, stream: Stream, batches: Batches) -> None:
        """Handle the end of the query, after a stop or a failure."""
        failure = self._find_failure(stream, batches)
        self._size = stream.size
        if failure is not None:
            self._failed(failure)
        elif self._again is not None and self._deadline is None:
            self._rest(0.0, attempt=0, reason=self._again)
        else:
            self._end(None)

    def _failed(self, failure: QueryFailure) -> None:
        error = failure.error
        if self._deadline is not None or not failure.may_pass:
            self._end(error)
            return
        seconds = self._restarts.failed(random.random())  # noqa: S311 - no secret
        if seconds is None:
            count = self._restarts.failures
            problem = f"{error.problem} It failed {count} times in a row, with no batch finished in between."
            self._end(type(error)(problem, hint=error.hint) if count > 1 else error)
            return
        self._size = self._size.after_failure()
        self._rest(seconds, attempt=self._restarts.failures, reason=error.problem)

    def _rest(self, seconds: float, *, attempt: int, reason: str) -> None:
        self._emit(
            events.Restarting(
                group=self._handler.group,
                handler=self._handler.name,
                attempt=attempt,
                reason=reason,
                seconds=round(seconds, 3),
            )
        )
        self._stream = self._batches = self._again = None
        # Spark has not recorded these batches as finished, so their records come again.
        self._unconfirmed.clear()
        self._due = time.monotonic() + seconds

    def _find_failure(self, stream: Stream, batches: Batches) -> QueryFailure | None:
        error = batches.failure
        # After a stop, the closed barrier may end the query, which Spark reports as a failure.
        if error is None and self._deadline is None and self._again is None:
            error = stream.exception()
        return None if error is None else query_failure(error, self._handler)

    # Progress.

    def _confirm_batches(self, batches: Batches) -> None:
        """Commit and report batches that Spark has recorded as finished: a restart does not repeat those."""
        self._unconfirmed.extend(_take_all(batches.done))
        confirmed = []
        while self._unconfirmed and self._plan.checkpoint.is_finished(self._unconfirmed[0].number):
            confirmed.append(self._unconfirmed.pop(0))
        if not confirmed:
            return
        self._restarts.progressed()
        self._reached.update(self._plan.checkpoint.offsets_of(confirmed[-1].number))
        self._plan.group.advance(self._reached)
        lag = report_lag(self._handler.group, self._reached, self._plan.cluster_view.ends(self._reached), self._emit)
        for batch in confirmed:
            self._totals += batch.counts
            self._emit(
                events.BatchFinished(
                    group=self._handler.group,
                    handler=self._handler.name,
                    batch=batch.number,
                    seconds=round(batch.seconds, 3),
                    lag=lag,
                    next_size=(self._size if self._stream is None else self._stream.size).size,
                    **asdict(batch.counts),
                )
            )
        self._emit(events.Progressed(group=self._handler.group, handler=self._handler.name, **asdict(self._totals)))
        if self._stream is not None:
            self._stream.finished = above(self._stream.finished, self._reached)

    def _targets_reached(self) -> bool:
        targets = self._plan.targets
        return targets is not None and all(self._reached.get(tp, -1) >= end for tp, end in targets.items())

    # The end.

    def _cancel(self, stream: Stream) -> None:
        reason = (
            f"The batch that handler {self._handler.name} was running took longer than "
            f"drain_timeout={self._handler.drain_timeout:g}s. It was cancelled, and its records will come again."
        )
        self._emit(events.Error(group=self._handler.group, reason=reason, fatal=False))
        stream.stop()
        self._end(None)

    def _end(self, error: PenstockError | None) -> None:
        """Commit the last finished batches, and emit the final events."""
        self.error = error
        if error is not None:
            self._emit(
                events.Error(group=self._handler.group, reason=str(error), fatal=True, traceback=error.traceback)
            )
            self.stop("error")
        if self._batches is not None:
            self._confirm_batches(self._batches)
        # Commit the checkpoint's offsets once more, in case an earlier commit failed.
        self._plan.group.advance(self._plan.checkpoint.finished())
        self._emit(
            events.Stopped(
                group=self._handler.group,
                handler=self._handler.name,
                seconds=round(time.monotonic() - self._began, 3),
                **asdict(self._totals),
            )
        )
        self.is_over = True


def _take_all(queue: "SimpleQueue[Batch]") -> Iterator[Batch]:
    while not queue.empty():
        yield queue.get()
