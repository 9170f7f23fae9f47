"""Emits a member's events and counts its records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.attempts.work import Work
from penstock.app.handler import Handler
from penstock.app.routing.route_reports import RouteReports
from penstock.core.failures.outcome import Delayed, Done, Failed, Outcome
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.reports.rebalance import Rebalance
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.effects import Attempt, Effects, Result, Send
from penstock.core.scheduling.hot_key_detector import BlockingKey
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.core.text.plurals import counted
from penstock.errors import PenstockError


class Reporter:
    """The dispatcher calls one method per fact.

    With ``per_record`` it also emits events for each record, which costs time.
    """

    def __init__(
        self,
        handler: Handler,
        emit: Callable[[events.Event], None],
        *,
        member: str,
        adapter: RecordAdapter,
        per_record: bool,
    ) -> None:
        self._who: dict[str, Any] = {"group": handler.group, "member": member}
        self._group = handler.group
        self._handler = handler
        self._emit = emit
        self._adapter = adapter
        self._per_record = per_record
        self._counts = Counts()
        self._reported_read = 0
        self._reported_blocked = False
        self._routes = RouteReports(handler, adapter) if len(handler.routes) > 1 else None

    @property
    def counts(self) -> Counts:
        return self._counts

    @property
    def route_counts(self) -> Mapping[str, Counts]:
        return {} if self._routes is None else self._routes.counts

    def started(self, lag: int, topics: tuple[str, ...]) -> None:
        each = self._handler
        self._emit(
            events.Started(
                engine="local",
                group=self._group,
                handler=each.name,
                topics=topics,
                lag=lag,
                order=each.order,
                concurrency=each.largest_concurrency * each.members,
                auto=each.concurrency == "auto",
            )
        )

    # Ownership.

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Called on the fetcher thread or a self-managed member's thread, not on the dispatcher's."""
        self._emit(events.Rebalanced(**self._who, rebalance=rebalance))

    def assigned(self, epoch: Epoch, offset: int | None) -> None:
        self._emit(events.Assigned(**self._who, **_where(epoch), epoch=epoch.number, offset=offset))

    def revoked(self, epoch: Epoch) -> None:
        unfinished = epoch.tracker.unfinished
        self._emit(events.Revoked(**self._who, **_where(epoch), epoch=epoch.number, unfinished=unfinished))
        self._warn_of_losses(epoch, f"within drain_timeout={self._handler.drain_timeout:g}s")

    def lost(self, epoch: Epoch) -> None:
        self._emit(events.Lost(**self._who, **_where(epoch), epoch=epoch.number))
        self._warn_of_losses(epoch, "before the group took the partition away")

    def _warn_of_losses(self, epoch: Epoch, when: str) -> None:
        """At most once: nobody gets the records that are committed and not handled. That must not happen silently."""
        if epoch.gate is None or epoch.committed is None:
            return
        count = epoch.tracker.unfinished_below(epoch.committed[0])
        if count:
            topic, partition = epoch.tp
            self.warned(
                f"{counted(count, 'record')} of {topic}[{partition}] did not finish {when}. With at-most-once, Kafka "
                "does not redeliver what is committed. Lower max_in_flight=, or raise drain_timeout=."
            )

    def start_overridden(self, epoch: Epoch, offset: int | None, committed: int | None) -> None:
        self._emit(events.StartOverridden(**self._who, **_where(epoch), offset=offset, committed=committed))

    def out_of_range(self, found: OutOfRange) -> None:
        topic, partition = found.tp
        self._emit(
            events.OffsetOutOfRange(
                **self._who,
                topic=topic,
                partition=partition,
                offset=found.offset,
                low=found.low,
                high=found.high,
                moved_to=found.moved_to,
                skipped=found.skipped,
            )
        )

    # Records.

    def dispatched(self, works: Iterable[Work]) -> None:
        """Emit an event for each record that was sent to a worker."""
        if not self._per_record:
            return
        for work in works:
            for run in work.unstarted:
                for record in run.records:
                    offset = self._adapter.offset_of(record)
                    attempt = run.epoch.attempt_at(offset)
                    self._emit(events.Dispatched(**self._record(run.epoch, record, offset), attempt=attempt))

    def stalled(self, epoch: Epoch, record: AnyRecord, seconds: float) -> None:
        offset = self._adapter.offset_of(record)
        where = self._record(epoch, record, offset)
        self._emit(events.Stalled(**where, attempt=epoch.attempt_at(offset), seconds=round(seconds, 3)))

    def overdue(self, epoch: Epoch, record: AnyRecord, seconds: float, stack: str) -> None:
        offset = self._adapter.offset_of(record)
        where = self._record(epoch, record, offset)
        late = events.Overdue(**where, attempt=epoch.attempt_at(offset), seconds=round(seconds, 3), stack=stack)
        self._emit(late)

    def hot_key(self, hot: BlockingKey) -> None:
        epoch = hot.lane.epoch
        self._emit(
            events.HotKey(
                **self._who,
                **_where(epoch),
                key=_text(hot.lane.key),
                epoch=epoch.number,
                waiting=hot.waiting,
                of=hot.of,
                seconds=round(hot.seconds, 3),
            )
        )

    def attempted(self, results: Sequence[Result]) -> None:
        """Workers have these outcomes; call it before their effects are reported."""
        if self._routes is not None:
            self._routes.note(results)

    def attempted_one(self, tried: Attempt, outcome: Outcome) -> None:
        if self._routes is not None:
            self._routes.note_one(tried, outcome)

    def outputs_written(self, epoch: Epoch, offset: int, done: Done) -> None:
        """On Spark: the outputs of a record were written, which then counts as one without outputs."""
        if self._routes is not None:
            self._routes.written(epoch, offset, done)

    def outputs_refused(self, send: Send) -> None:
        """On Spark: the broker has refused them later. The record is not finished after all: its dead letter counts."""
        self._counts.read -= 1
        if self._routes is not None:
            self._routes.refused(send)

    def settled(self, effects: Effects) -> None:
        """What workers reported: finished, skipped and retried records."""
        self._counts.read += sum(len(records) for _, records in effects.finished)
        self._counts.skipped += len(effects.skipped)
        if self._per_record:
            self._each(effects)
        for tried, failure, delay in effects.retried:
            self._emit(
                events.Retried(
                    **self._who,
                    **self._tried(tried),
                    attempt=tried.attempt,
                    reason=_reason(failure),
                    seconds=round(delay, 3),
                    traceback=failure.traceback,
                )
            )
        for tried, reason in effects.expired:
            self._emit(events.Expired(**self._who, **self._tried(tried), reason=reason))
        for tried, reason in effects.duplicates:
            self._emit(events.Duplicate(**self._who, **self._tried(tried), reason=reason))
        for tried, delayed in effects.delayed:
            self._delayed(tried, delayed)
        self._blocked(effects)
        if self._routes is not None:
            self._routes.settled(effects)

    def _delayed(self, tried: Attempt, delayed: Delayed, *, to: str | None = None) -> None:
        seconds = round(delayed.seconds, 3)
        self._emit(events.Delayed(**self._who, **self._tried(tried), reason=delayed.reason, seconds=seconds, to=to))

    def _blocked(self, effects: Effects) -> None:
        """Emit one event for all lanes: if a dependency is unavailable, every lane is blocked by it."""
        if effects.blocked and not self._reported_blocked:
            self._reported_blocked = True
            tried, failure, delay = effects.blocked[0]
            where = self._tried(tried)
            self._emit(events.AwaitingDependency(**self._who, **where, reason=failure.message, seconds=round(delay, 3)))

    def delivered(self, send: Send) -> None:
        """Count a record whose outputs or dead letter the broker has.

        A record in a retry topic is counted after its retry.
        """
        self._report_delivered(send)
        if self._routes is not None:
            self._routes.delivered(send)

    def _report_delivered(self, send: Send) -> None:
        tried = send.tried
        if isinstance(send.failure, Delayed):
            self._delayed(tried, send.failure, to=send.outgoing.topic)
            return
        if send.failure is not None and send.delay is not None:
            self._postponed(send, send.failure, send.delay)
            return
        self._counts.read += 1
        if send.failure is None:
            self._counts.written += send.output_count
            if self._per_record:
                self._finished(tried.epoch, tried.record, tried.offset, tried.attempt)
            return
        self._counts.dead_lettered += 1
        self._emit(
            events.DeadLettered(
                **self._who,
                **self._tried(tried),
                attempt=tried.attempt,
                to=send.outgoing.topic,
                reason=_reason(send.failure),
                traceback=send.failure.traceback,
            )
        )

    def _postponed(self, send: Send, failure: Failed, delay: float) -> None:
        self._emit(
            events.Postponed(
                **self._who,
                **self._tried(send.tried),
                attempt=send.tried.attempt,
                to=send.outgoing.topic,
                reason=_reason(failure),
                seconds=delay,
                traceback=failure.traceback,
            )
        )

    def progressed(self) -> None:
        self._reported_blocked = False
        if self._counts.read != self._reported_read:
            self._reported_read = self._counts.read
            self._routes_progressed()
            self._emit(events.Progressed(group=self._group, handler=self._handler.name, **asdict(self._counts)))

    def breaker_opened(self, reason: str, probe: float) -> None:
        name = self._handler.name
        self._emit(events.BreakerOpened(**self._who, handler=name, reason=reason, seconds=round(probe, 3)))

    def breaker_closed(self, seconds: float) -> None:
        self._emit(events.BreakerClosed(**self._who, handler=self._handler.name, seconds=round(seconds, 3)))

    def rate_limited(self, rate: str, waiting: int) -> None:
        self._emit(events.RateLimited(**self._who, handler=self._handler.name, rate=rate, waiting=waiting))

    def rate_eased(self, seconds: float) -> None:
        self._emit(events.RateEased(**self._who, handler=self._handler.name, seconds=round(seconds, 3)))

    def concurrency_changed(self, concurrency: int, before: int) -> None:
        self._emit(
            events.ConcurrencyChanged(**self._who, handler=self._handler.name, concurrency=concurrency, before=before)
        )

    # Commits and back-pressure.

    def committed(self, tp: TopicPartition, offset: int) -> None:
        topic, partition = tp
        self._emit(events.Committed(**self._who, topic=topic, partition=partition, offset=offset))

    def commit_failed(self, tp: TopicPartition, offset: int, reason: str) -> None:
        topic, partition = tp
        self._emit(events.CommitFailed(**self._who, topic=topic, partition=partition, offset=offset, reason=reason))

    def paused(self, epoch: Epoch) -> None:
        self._emit(events.Paused(group=self._group, **_where(epoch)))

    def resumed(self, epoch: Epoch) -> None:
        self._emit(events.Resumed(group=self._group, **_where(epoch)))

    def offset_map_full(self, epoch: Epoch, commit_point: int, lanes: int) -> None:
        self._emit(events.OffsetMapFull(**self._who, **_where(epoch), offset=commit_point, lanes=lanes))

    # Errors, and the stop.

    def ignored_metadata(self, tp: TopicPartition, offset: int, why: str) -> None:
        topic, partition = tp
        self.warned(
            f"The metadata of the commit {topic}[{partition}]@{offset} is ignored: {why}. "
            "Records that it marks as finished may be processed again."
        )

    def suspended(self, seconds: float) -> None:
        self.warned(
            f"No poll for {seconds:.1f} s, longer than the member's lease (session.timeout.ms minus a heartbeat). "
            "Handlers are paused until the broker confirms the membership."
        )

    def damaged_headers(self, tp: TopicPartition, offset: int, count: int, why: str) -> None:
        topic, partition = tp
        more = f" and {count - 1:,} more" if count > 1 else ""
        self.warned(f"{topic}[{partition}]@{offset}{more}: {why}.")

    def warned(self, reason: str) -> None:
        self._emit(events.Error(group=self._group, reason=reason, fatal=False))

    def error(self, error: PenstockError, *, fatal: bool) -> None:
        reason = str(error) if fatal else f"{error} Penstock retries."
        self._emit(events.Error(group=self._group, reason=reason, fatal=fatal, traceback=error.traceback))

    def stopping(self, reason: str) -> None:
        self._emit(events.Stopping(group=self._group, handler=self._handler.name, reason=reason))

    def stopped(self, seconds: float) -> None:
        self._routes_progressed()
        counts = asdict(self._counts)
        self._emit(events.Stopped(group=self._group, handler=self._handler.name, seconds=round(seconds, 3), **counts))

    def _routes_progressed(self) -> None:
        if self._routes is not None:
            for event in self._routes.progress():
                self._emit(event)

    def _each(self, effects: Effects) -> None:
        skipped = {id(tried.record) for tried, _ in (*effects.skipped, *effects.expired, *effects.duplicates)}
        for epoch, records in effects.finished:
            for record in records:
                if id(record) not in skipped:
                    offset = self._adapter.offset_of(record)
                    self._finished(epoch, record, offset, effects.again.get((epoch, offset), 1))
        for tried, reason in effects.skipped:
            self._emit(events.Skipped(**self._who, **self._tried(tried), reason=reason))

    def _finished(self, epoch: Epoch, record: AnyRecord, offset: int, attempt: int) -> None:
        self._emit(events.Finished(**self._record(epoch, record, offset), attempt=attempt))

    def _record(self, epoch: Epoch, record: AnyRecord, offset: int) -> dict[str, Any]:
        key = _text(self._adapter.key_of(record))
        ran = self._handler.name if self._routes is None else self._routes.name_of(epoch, offset)
        return {**self._who, **_where(epoch), "handler": ran, "offset": offset, "key": key, "epoch": epoch.number}

    def _tried(self, tried: Attempt) -> dict[str, Any]:
        epoch, offset = tried.epoch, tried.offset
        ran = self._handler.name if self._routes is None else self._routes.name_of(epoch, offset)
        return {**_where(epoch), "handler": ran, "offset": offset, "epoch": epoch.number}


def _text(key: Any) -> str | None:
    return None if key is None else key.decode(errors="backslashreplace")


def _where(epoch: Epoch) -> dict[str, Any]:
    topic, partition = epoch.tp
    return {"topic": topic, "partition": partition}


def _reason(failure: Failed) -> str:
    return f"{failure.error_type}: {failure.message}"
