"""One handler on Spark: a streaming query, the group's offsets behind it, and the events about both."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from queue import SimpleQueue

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.app import Handler
from penstock.core import events
from penstock.core.counts import Counts
from penstock.errors import PenstockError
from penstock.spark.batches import Batch, Batches
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.failures import query_error
from penstock.spark.group import GroupOffsets
from penstock.spark.offsets import Offsets
from penstock.spark.source import read_source, sink_options, source_options

# How often Spark looks for new records when it has caught up.
_TRIGGER = "200 milliseconds"


@dataclass(frozen=True)
class Plan:
    """All that is decided about a handler before Spark starts.

    ``stage`` is the handler as it travels to the workers, ``clients`` holds the settings of Spark's Kafka clients;
    ``targets`` are the ends to reach where the run is to end when it has caught up, and None where it is not.
    """

    handler: Handler
    stage: Handler
    clients: Mapping[str, str]
    checkpoint: Checkpoint
    start: Offsets
    lag: int
    targets: Offsets | None
    group: GroupOffsets


class HandlerQuery:
    """Start it, let it ``advance`` until it ``is_over``; ``error`` says whether it ended because of one.

    All of it belongs to one thread, the driver's loop. Spark's stream thread is met only through ``Batches``.
    """

    def __init__(self, session: SparkSession, plan: Plan, emit: Callable[[events.Event], None]) -> None:
        self._session = session
        self._plan = plan
        self._handler = plan.handler
        self._emit = emit
        self._batches = Batches(session, plan.stage, sink_options(plan.clients))
        self._unconfirmed: list[Batch] = []
        self._totals = Counts()
        self._reached: Offsets = {}
        self._query: StreamingQuery | None = None
        self._deadline: float | None = None
        self._began = time.monotonic()
        self.is_over = False
        self.error: PenstockError | None = None

    def start(self) -> None:
        source = read_source(self._session, source_options(self._handler, self._plan.clients, self._plan.start))
        writer = source.writeStream.foreachBatch(self._batches.run).trigger(processingTime=_TRIGGER)
        self._query = writer.option("checkpointLocation", str(self._plan.checkpoint.folder)).start()
        self._emit(
            events.Started(
                engine="spark",
                group=self._handler.group,
                handler=self._handler.name,
                topics=self._handler.topics,
                lag=self._plan.lag,
            )
        )

    def advance(self) -> None:
        """Report and commit what has been finished since the last call, and end what is to end."""
        if self._query is None or self.is_over:
            return
        # Asked before the finished batches are taken: one that ends in between is then still seen as busy.
        busy = self._batches.busy
        self._confirm_batches()
        if not self._query.isActive:
            self._end()
        elif self._deadline is None:
            if self._targets_reached():
                self.stop("caught up")
        elif not busy and not self._unconfirmed:
            self._query.stop()
            self._end()
        elif time.monotonic() > self._deadline:
            self._cancel(self._query)

    def stop(self, reason: str) -> None:
        """Let the batch that is running be the last one; ``advance`` does the rest."""
        if self._deadline is None and not self.is_over:
            self._emit(events.Stopping(group=self._handler.group, reason=reason))
            self._batches.close()
            self._deadline = time.monotonic() + self._handler.drain_timeout

    def _cancel(self, query: StreamingQuery) -> None:
        reason = (
            f"The batch that handler {self._handler.name} was running took longer than "
            f"drain_timeout={self._handler.drain_timeout:g}s. It was cancelled, and its records will come again."
        )
        self._emit(events.Error(group=self._handler.group, reason=reason, fatal=False))
        query.stop()
        self._batches.failure = None  # which was the cancelling itself
        self._end()

    def _confirm_batches(self) -> None:
        """A batch counts once Spark has noted its end: only then will a restart not repeat it."""
        self._unconfirmed.extend(_take_all(self._batches.done))
        checkpoint = self._plan.checkpoint
        while self._unconfirmed and checkpoint.is_finished(self._unconfirmed[0].number):
            batch = self._unconfirmed.pop(0)
            self._totals += batch.counts
            self._emit(
                events.BatchFinished(
                    group=self._handler.group,
                    handler=self._handler.name,
                    batch=batch.number,
                    seconds=round(batch.seconds, 3),
                    **asdict(batch.counts),
                )
            )
            self._reached = checkpoint.offsets_of(batch.number)
            self._plan.group.advance(self._reached)

    def _targets_reached(self) -> bool:
        targets = self._plan.targets
        return targets is not None and all(self._reached.get(place, -1) >= end for place, end in targets.items())

    def _end(self) -> None:
        """The query runs no more: commit the last of it and say how it was."""
        self.error = self._find_error()
        if self.error is not None:
            self._emit(events.Error(group=self._handler.group, reason=str(self.error), fatal=True))
            self.stop("error")
        self._confirm_batches()
        # Once more from the checkpoint itself, for a commit that was refused on the way.
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

    def _find_error(self) -> PenstockError | None:
        error = self._batches.failure
        # Once it was to stop, a query may end by the closed border, which Spark takes for a failure.
        if error is None and self._deadline is None and self._query is not None:
            error = self._query.exception()
        return None if error is None else query_error(error, self._handler)


def _take_all(queue: "SimpleQueue[Batch]") -> Iterator[Batch]:
    while not queue.empty():
        yield queue.get()
