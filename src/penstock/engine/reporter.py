"""A member's events and counts, so that the dispatcher can say in one word what happened."""

from collections.abc import Callable
from dataclasses import asdict

from penstock.app import Handler
from penstock.core import events
from penstock.core.counts import Counts
from penstock.core.decisions import Consequences, Send
from penstock.core.lanes import Epoch
from penstock.core.outcome import Failed
from penstock.core.record import Record, TopicPartition
from penstock.errors import PenstockError


class Reporter:
    """``per_record`` asks for the events that come once for each record, which cost time."""

    def __init__(self, handler: Handler, emit: Callable[[events.Event], None], *, per_record: bool) -> None:
        self._group = handler.group
        self._handler = handler
        self._emit = emit
        self._per_record = per_record
        self._counts = Counts()
        self._told = 0

    def started(self, lag: int) -> None:
        handler = self._handler
        self._emit(
            events.Started(engine="local", group=self._group, handler=handler.name, topics=handler.topics, lag=lag)
        )

    def assigned(self, epoch: Epoch) -> None:
        topic, partition = epoch.place
        offset = None if epoch.committed is None else epoch.committed[0]
        self._emit(
            events.Assigned(group=self._group, topic=topic, partition=partition, epoch=epoch.number, offset=offset)
        )

    def revoked(self, epoch: Epoch) -> None:
        topic, partition = epoch.place
        self._emit(
            events.Revoked(
                group=self._group,
                topic=topic,
                partition=partition,
                epoch=epoch.number,
                unfinished=epoch.tracker.unfinished,
            )
        )

    def lost(self, epoch: Epoch) -> None:
        topic, partition = epoch.place
        self._emit(events.Lost(group=self._group, topic=topic, partition=partition, epoch=epoch.number))

    def settled(self, consequences: Consequences) -> None:
        """What workers reported: finished, skipped and retried records."""
        self._counts.read += sum(len(records) for _, records in consequences.finished)
        self._counts.skipped += len(consequences.skipped)
        if self._per_record:
            self._each(consequences)
        for record, failure, delay in consequences.retried:
            self._emit(
                events.Retried(
                    group=self._group,
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                    attempt=record.attempt,
                    reason=_reason(failure),
                    seconds=round(delay, 3),
                )
            )

    def delivered(self, send: Send) -> None:
        """The broker has an output or a dead letter, so its record is finished."""
        self._counts.read += 1
        if send.failure is None:
            self._counts.written += 1
            if self._per_record:
                self._finished(send.record, send.epoch)
            return
        self._counts.dead_lettered += 1
        self._emit(
            events.DeadLettered(
                group=self._group,
                topic=send.record.topic,
                partition=send.record.partition,
                offset=send.record.offset,
                attempt=send.record.attempt,
                to=send.outgoing.topic,
                reason=_reason(send.failure),
            )
        )

    def progressed(self) -> None:
        if self._counts.read != self._told:
            self._told = self._counts.read
            self._emit(events.Progressed(group=self._group, handler=self._handler.name, **asdict(self._counts)))

    def committed(self, place: TopicPartition, offset: int) -> None:
        topic, partition = place
        self._emit(events.Committed(group=self._group, topic=topic, partition=partition, offset=offset))

    def commit_failed(self, place: TopicPartition, offset: int, reason: str) -> None:
        topic, partition = place
        self._emit(
            events.CommitFailed(group=self._group, topic=topic, partition=partition, offset=offset, reason=reason)
        )

    def paused(self, epoch: Epoch) -> None:
        topic, partition = epoch.place
        self._emit(events.Paused(group=self._group, topic=topic, partition=partition))

    def resumed(self, epoch: Epoch) -> None:
        topic, partition = epoch.place
        self._emit(events.Resumed(group=self._group, topic=topic, partition=partition))

    def ignored_metadata(self, place: TopicPartition, offset: int, why: str) -> None:
        topic, partition = place
        self._emit(
            events.Error(
                group=self._group,
                reason=f"The metadata of the commit {topic}[{partition}]@{offset} is ignored: {why}. "
                "Records that it says are finished may be repeated.",
                fatal=False,
            )
        )

    def error(self, error: PenstockError, *, fatal: bool) -> None:
        self._emit(events.Error(group=self._group, reason=str(error), fatal=fatal))

    def stopping(self, reason: str) -> None:
        self._emit(events.Stopping(group=self._group, reason=reason))

    def stopped(self, seconds: float) -> None:
        counts = asdict(self._counts)
        self._emit(events.Stopped(group=self._group, handler=self._handler.name, seconds=round(seconds, 3), **counts))

    def _each(self, consequences: Consequences) -> None:
        skipped = {id(record) for record, _ in consequences.skipped}
        for epoch, records in consequences.finished:
            for record in records:
                if id(record) not in skipped:
                    self._finished(record, epoch)
        for record, reason in consequences.skipped:
            self._emit(
                events.Skipped(
                    group=self._group,
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                    reason=reason,
                )
            )

    def _finished(self, record: Record, epoch: Epoch) -> None:
        self._emit(
            events.Finished(
                group=self._group,
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                epoch=epoch.number,
                attempt=record.attempt,
            )
        )


def _reason(failure: Failed) -> str:
    return f"{failure.error_type}: {failure.message}"
