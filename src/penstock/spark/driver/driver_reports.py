"""Emits the events of a handler's driver, and counts its records."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock.app import Handler
from penstock.core.progress.slices import PartitionSlices
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.errors import PenstockError
from penstock.kafka import Cluster, source_lag
from penstock.spark.tasks.slice_result import SliceResult
from penstock.spark.tasks.slice_task import MEMBER

Partitions = Mapping[TopicPartition, PartitionSlices]


class DriverReports:
    """The driver calls one method per fact, on its thread."""

    def __init__(self, handler: Handler, emit: Callable[[events.Event], None]) -> None:
        self._handler = handler
        self._who: dict[str, Any] = {"group": handler.group, "handler": handler.name}
        self.emit = emit
        self._counts, self._told = Counts(), Counts()
        self._route_counts: dict[str, Counts] = {}
        self._number = 0
        self._warned: set[str] = set()
        self._began: float | None = None

    def begin(self) -> None:
        """Slices can start from now on."""
        self._began = time.monotonic()

    def started(self, cluster: Cluster, sources: Sequence[TopicPartition]) -> None:
        topics = tuple(dict.fromkeys(topic for topic, _ in sources)) or self._handler.topics
        replay = self._handler.replay_range
        lag = source_lag(self._handler, cluster, sources) if replay is None else replay.left
        limits: dict[str, Any] = {"order": self._handler.order, "concurrency": self._handler.largest_concurrency}
        self.emit(events.Started(engine="spark", **self._who, topics=topics, lag=lag, **limits))

    # Partitions.

    def assigned(self, each: PartitionSlices) -> None:
        self.emit(events.Assigned(**self._where(each.tp), epoch=each.epoch, offset=each.position))

    def revoked(self, each: PartitionSlices) -> None:
        unfinished = max(0, each.read_to - each.position)
        self.emit(events.Revoked(**self._where(each.tp), epoch=each.epoch, unfinished=unfinished))

    def lost(self, each: PartitionSlices) -> None:
        self.emit(events.Lost(**self._where(each.tp), epoch=each.epoch))

    def committed(self, tp: TopicPartition, offset: int) -> None:
        self.emit(events.Committed(**self._where(tp), offset=offset))

    def commit_failed(self, tp: TopicPartition, offset: int, reason: str) -> None:
        self.emit(events.CommitFailed(**self._where(tp), offset=offset, reason=reason))

    # Slices.

    def finished(self, results: Sequence[SliceResult], partitions: Partitions) -> None:
        for event in (event for result in results for event in result.events):
            self.emit(event)
        counts = sum((result.counts for result in results), Counts())
        self._counts += counts
        for result in results:
            for name, found in result.route_counts.items():
                self._route_counts[name] = self._route_counts.get(name, Counts()) + found
        if not counts.read:
            return
        self._number += 1
        self.emit(
            events.BatchFinished(
                **self._who,
                batch=self._number,
                seconds=round(max(result.seconds for result in results), 3),
                lag=sum(_lag(each) for each in partitions.values()),
                **asdict(counts),
            )
        )

    def restarting(self, attempt: int, reason: str, seconds: float) -> None:
        self.emit(events.Restarting(**self._who, attempt=attempt, reason=reason, seconds=round(seconds, 3)))

    def progressed(self, partitions: Iterable[PartitionSlices]) -> None:
        if self._counts == self._told:
            return
        self._told = self._counts
        for each in partitions:
            topic, partition = each.tp
            self.emit(
                events.Lagging(
                    group=self._handler.group, topic=topic, partition=partition, offset=each.position, lag=_lag(each)
                )
            )
        self._routes_progressed()
        self.emit(events.Progressed(**self._who, **asdict(self._counts)))

    def _routes_progressed(self) -> None:
        for name, counts in self._route_counts.items():
            self.emit(events.RouteProgressed(group=self._handler.group, handler=name, **asdict(counts)))

    # Errors, and the stop.

    def warned(self, reason: str) -> None:
        """Report it once: the driver asks again and again."""
        if reason not in self._warned:
            self._warned.add(reason)
            self.emit(events.Error(group=self._handler.group, reason=reason, fatal=False))

    def cancelled(self) -> None:
        """At the stop, slices ran for longer than ``drain_timeout``."""
        handler = self._handler
        what = (
            "those of their records that were not handled are lost: with at-most-once, they were committed before"
            if handler.is_at_most_once
            else "their records will come again"
        )
        self.warned(
            f"The slices that handler {handler.name} was running took longer than drain_timeout="
            f"{handler.drain_timeout:g}s. They were cancelled, and {what}."
        )

    def failed(self, error: PenstockError) -> None:
        self.emit(events.Error(group=self._handler.group, reason=str(error), fatal=True, traceback=error.traceback))

    def stopping(self, reason: str) -> None:
        if self._began is not None:
            self.emit(events.Stopping(**self._who, reason=reason))

    def stopped(self) -> None:
        if self._began is not None:
            seconds = round(time.monotonic() - self._began, 3)
            self._routes_progressed()
            self.emit(events.Stopped(**self._who, seconds=seconds, **asdict(self._counts)))

    def _where(self, tp: TopicPartition) -> dict[str, Any]:
        return {"group": self._handler.group, "member": MEMBER, "topic": tp[0], "partition": tp[1]}


def _lag(each: PartitionSlices) -> int:
    return max(0, each.end - each.position)
