"""A share group member: one consumer, one thread, and workers for the records of one poll."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any

from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.app.dispatching.reporter import Reporter
from penstock.app.runs.live_command import HandlerState, LiveCommand
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.core.reports.repeated_errors import RepeatedErrors
from penstock.engine.dispatch.thread_messages import PartitionState
from penstock.engine.observe.health import Health
from penstock.engine.observe.member_metrics import MemberMetrics, Stopwatches
from penstock.engine.produce.outbox import Outbox
from penstock.engine.share.acquired_records import AcquiredRecords, Inbox
from penstock.engine.share.share_workers import ShareWorkers, make_workers
from penstock.errors import CallbackError, PenstockError
from penstock.kafka import MESSAGES, make_alone_producer, make_producer
from penstock.kafka.errors import is_final, translate
from penstock.kafka.group.share_consumer import delivery_limit, make_share_consumer, set_share_start

_POLL_SECONDS = 0.2
_PROGRESS_SECONDS = 0.5
_FIRST_REBUILD_SECONDS = 1.0
_MAX_REBUILD_SECONDS = 30.0
_NUMBERS = count(1)


class ShareMember:
    """Call ``start``, then ``stop`` (twice is fine), then ``join``.

    ``error`` is then the reason of a failure, if any.
    """

    def __init__(
        self, handler: Handler, *, brokers: str, emit: Callable[[Event], None], per_record: bool, number: int = 0
    ) -> None:
        self.handler = handler
        self._brokers = brokers
        self._name = f"{socket.gethostname()}-{os.getpid()}-share-{next(_NUMBERS)}"
        self._reporter = Reporter(handler, emit, member=self._name, adapter=MESSAGES, per_record=per_record)
        self._stopping = threading.Event()
        self._stop_by = float("inf")
        self._polled = time.monotonic()
        self._has_polled = False
        self._in_flight = 0
        self._watches = Stopwatches(time.monotonic)
        self._errors = RepeatedErrors()
        self._inbox: Inbox = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"{handler.name}-share-{number}", daemon=True)
        self._workers: ShareWorkers | None = None
        self.error: BaseException | None = None

    def prepare(self, stop: threading.Event) -> None:
        """Make the workers and what they need before anything is consumed; then call ``start`` or ``discard``.

        Raises what a resource raises.
        """
        try:
            self._workers = make_workers(self.handler, MESSAGES, self._inbox.put, stop)
        except CallbackError as error:
            self._reporter.error(error, fatal=True)
            raise

    def discard(self) -> None:
        """Close the workers of a member that does not start, because another one cannot."""
        if self._workers is not None:
            self._close(self._workers)

    def start(self, lag: int, topics: tuple[str, ...]) -> None:
        self._reporter.started(lag, topics)
        self._thread.start()

    def stop(self, reason: str) -> None:
        if not self._stopping.is_set():
            self._stop_by = time.monotonic() + self.handler.drain_timeout
            self._stopping.set()
            self._reporter.stopping(reason)

    def join(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def has_joined(self) -> bool:
        """Whether a poll has returned: a share group assigns partitions without a rebalance."""
        return self._has_polled

    @property
    def breaker_problem(self) -> str | None:
        """Always None: share groups have no breaker."""
        return None

    def ping_store(self) -> None:
        """Do nothing: a share group has no offset store."""

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """Return {}: members of a share group own no partitions."""
        return {}

    @property
    def control_state(self) -> HandlerState:
        """What commands may change: nothing."""
        concurrency = self.handler.largest_concurrency
        return HandlerState(handler=self.handler.name, group=self.handler.group, concurrency=concurrency)

    def carry_out(self, command: LiveCommand) -> None:
        """Do nothing: ``RunningApp`` refuses commands for a share group."""

    def activity(self) -> None:
        """Return None: a share group has no lanes, and the dashboard shows what its metrics say."""

    def renew(self, tps: Sequence[TopicPartition]) -> None:
        """Do nothing: the broker keeps the positions of a share group."""

    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Do nothing: the broker keeps the positions of a share group."""

    def health(self) -> Health:
        return Health(
            handler=self.handler.name,
            group=self.handler.group,
            member=self._name,
            polled_seconds_ago=0.0 if self._in_flight else round(time.monotonic() - self._polled, 3),
            finished_seconds_ago=round(time.monotonic() - self._polled, 3) if self._in_flight else None,
            in_flight=self._in_flight,
            longest=(),
        )

    def member_metrics(self) -> MemberMetrics:
        """Call it from any thread. A share group has no lanes and commits no offsets."""
        health = self.health()
        return MemberMetrics(
            handler=self.handler.name,
            group=self.handler.group,
            in_flight=self._in_flight,
            lanes=0,
            works=self._in_flight,
            concurrency=self.handler.largest_concurrency,
            polled_seconds_ago=health.polled_seconds_ago,
            longest_seconds=health.finished_seconds_ago or 0.0,
            map_bytes={},
            watches=self._watches,
        )

    # The thread.

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._consume_with_retries()
        except PenstockError as error:
            self.error = error
            self._reporter.error(error, fatal=True)
        except BaseException as crash:  # noqa: BLE001 - the runner raises it; nothing is acknowledged after it
            self.error = crash
        self._reporter.progressed()
        self._reporter.stopped(time.monotonic() - began)

    def _consume_with_retries(self) -> None:
        """Consume, and replace a broken consumer until ``stop`` or a final error."""
        handler = self.handler
        set_share_start(self._brokers, handler)
        limit = delivery_limit(self._brokers, handler)
        workers = self._workers or make_workers(handler, MESSAGES, self._inbox.put, self._stopping)
        outbox = Outbox(
            make_producer(self._brokers, settings=handler.named_settings, proven=False),
            self._inbox,  # type: ignore[arg-type] # the outbox only puts messages that this inbox accepts
            make_alone=lambda: make_alone_producer(self._brokers, handler.named_settings),
            brokers=self._brokers,
        )
        wait = _FIRST_REBUILD_SECONDS
        try:
            while not self._stopping.is_set():
                try:
                    self._consume(workers.submit, outbox, limit)
                except KafkaException as error:
                    problem = translate(error, doing=f"consuming {handler.source}", brokers=self._brokers)
                    if is_final(error.args[0]):
                        raise problem from error
                    self._report(problem)
                    self._stopping.wait(wait)
                    wait = min(2 * wait, _MAX_REBUILD_SECONDS)
        finally:
            self._close(workers)
            outbox.close()

    def _close(self, workers: ShareWorkers) -> None:
        problem = workers.close()
        if problem is not None:
            self._reporter.error(problem, fatal=True)
            self.error = self.error or problem

    def _consume(self, submit: Callable[[Message, int], None], outbox: Outbox, limit: int) -> None:
        consumer = make_share_consumer(self._brokers, self.handler)
        batch = AcquiredRecords(
            self.handler,
            self._inbox,
            outbox,
            self._reporter,
            adapter=MESSAGES,
            acknowledge=consumer.acknowledge,
            deliveries=limit,
        )
        try:
            consumer.set_acknowledgement_commit_callback(self._on_commit)
            consumer.subscribe(list(self.handler.topics))
            reported = time.monotonic()
            while not self._stopping.is_set():
                messages = self._poll(consumer)
                for message in messages:
                    submit(message, message.delivery_count() or 1)
                batch.settle(messages, give_up=lambda: time.monotonic() >= self._stop_by)
                self._in_flight = 0
                if batch.error is not None:
                    raise batch.error
                if time.monotonic() - reported >= _PROGRESS_SECONDS:
                    self._reporter.progressed()
                    reported = time.monotonic()
        finally:
            with suppress(KafkaException):
                consumer.close()  # this also sends the last acknowledgements

    def _poll(self, consumer: Any) -> list[Message]:
        """Poll. The poll also sends the acknowledgements of the last records."""
        messages = list(consumer.poll(timeout=_POLL_SECONDS))
        self._polled = time.monotonic()
        self._has_polled = True
        good = [message for message in messages if message.error() is None]
        self._in_flight = len(good)
        for message in messages:
            error = message.error()
            if error is not None:
                if is_final(error) or error.fatal():
                    raise KafkaException(error)
                problem = translate(KafkaException(error), doing=f"reading {message.topic()}", brokers=self._brokers)
                self._report(problem)
        return good

    def _report(self, error: PenstockError) -> None:
        if self._errors.is_due(str(error), time.monotonic()):
            self._reporter.error(error, fatal=False)

    def _on_commit(self, offsets: Mapping[KafkaTopicPartition, set[int]], error: KafkaException | None) -> None:
        """The client's callback. The broker refuses an acknowledgement after the record's lock has expired."""
        if error is None:
            return
        for tp, refused in offsets.items():
            reason = f"{error.args[0].str()}; the broker redelivers these records"
            self._reporter.commit_failed((tp.topic, tp.partition), min(refused, default=0), reason)
