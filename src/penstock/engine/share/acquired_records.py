"""The records that one poll of a share group acquired, until each is acknowledged to the broker."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue

from confluent_kafka import AcknowledgeType, Message

from penstock.app import Handler, RecordAdapter, halt_error
from penstock.app.attempts.failed_records import FailedRecords
from penstock.app.dispatching.reporter import Reporter
from penstock.core.failures.outcome import Done, Failed, Halt, Outcome, Skipped, TryAgain, decide
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.effects import Attempt, Effects, Send, sends_of
from penstock.core.scheduling.lanes import Epoch
from penstock.engine.dispatch.thread_messages import Delivered, EngineError, OutputRefused, ToDispatcher, Undeliverable
from penstock.engine.produce.outbox import Outbox
from penstock.engine.share.share_workers import Attempted
from penstock.errors import PenstockError
from penstock.kafka.client.message_records import tp_of

_CHECK_SECONDS = 0.05


Inbox = SimpleQueue[Attempted | ToDispatcher]
Acknowledge = Callable[[Message, AcknowledgeType], None]


class AcquiredRecords:
    """The records of one poll. The client requires that all of them are acknowledged before the next poll.

    A failed record is released, and the broker redelivers it at once to any member. The broker counts deliveries and
    drops a record after ``deliveries`` of them, so a record that fails in its last delivery becomes a dead letter.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        outbox: Outbox,
        reporter: Reporter,
        *,
        adapter: RecordAdapter,
        acknowledge: Acknowledge,
        deliveries: int,
    ) -> None:
        self._name = handler.name
        self._to_record = adapter.to_record
        self._inbox = inbox
        self._outbox = outbox
        self._reporter = reporter
        self._acknowledge = acknowledge
        self._deliveries = deliveries
        self._failed_records = FailedRecords(handler, adapter, time.time)
        self._epochs: dict[TopicPartition, Epoch] = {}
        self._open: dict[int, Attempt] = {}
        self.error: PenstockError | None = None

    def settle(self, messages: Sequence[Message], *, give_up: Callable[[], bool]) -> None:
        """Wait until all of these are acknowledged. When ``give_up()`` is true, release those that still run."""
        self._open = {id(message): self._tried(message) for message in messages}
        while self._open:
            try:
                self._take(self._inbox.get(timeout=_CHECK_SECONDS))
            except Empty:
                if self._outbox.is_full:
                    self._outbox.flush()
                if give_up() or self.error is not None:
                    self._release_rest()

    def _take(self, message: Attempted | ToDispatcher) -> None:
        match message:
            case Attempted(record, outcome):
                if id(record) in self._open:  # else it was released, and another member may have it
                    self._settle(self._open[id(record)], outcome)
            case Delivered(sends):
                for send in sends:
                    if send.outputs is not None and not send.outputs.acknowledge():
                        continue
                    failed = send.failure is not None
                    self._end(send.tried, AcknowledgeType.REJECT if failed else AcknowledgeType.ACCEPT)
                    self._reporter.delivered(send)
            case OutputRefused(send, failure):
                if send.outputs is None or send.outputs.give_up():
                    self._bury(send.tried, failure)
            case Undeliverable(_, error) | EngineError(error, _):
                self.error = self.error or error

    def _settle(self, tried: Attempt, outcome: Outcome) -> None:
        self._reporter.attempted_one(tried, outcome)
        effects = Effects()
        match outcome:
            case Done(outputs) if outputs:
                self._outbox.send(sends_of(tried, outputs))
            case Failed():
                self._fail(tried, outcome, effects)
            case _:
                if isinstance(outcome, Skipped):
                    effects.skipped.append((tried, outcome.reason))
                effects.finished.append((tried.epoch, [tried.record]))
                effects.again[tried.epoch, tried.offset] = tried.attempt
                self._end(tried, AcknowledgeType.ACCEPT)
        self._reporter.settled(effects)

    def _fail(self, tried: Attempt, failure: Failed, effects: Effects) -> None:
        decision = decide(failure, attempt=tried.attempt, has_dead_letter=True, random=random.random)
        if isinstance(decision, Halt):
            record = self._to_record(tried.record, tried.attempt)
            self.error = self.error or halt_error(self._name, record, failure)
        elif isinstance(decision, TryAgain) and tried.attempt < self._deliveries:
            effects.retried.append((tried, failure, 0.0))
            self._end(tried, AcknowledgeType.RELEASE)
        else:
            self._bury(tried, failure)

    def _bury(self, tried: Attempt, failure: Failed) -> None:
        self._outbox.send([Send(tried, self._failed_records.dead_letter(tried, failure), replace(failure, final=True))])

    def _release_rest(self) -> None:
        for tried in [*self._open.values()]:
            self._end(tried, AcknowledgeType.RELEASE)

    def _end(self, tried: Attempt, how: AcknowledgeType) -> None:
        if self._open.pop(id(tried.record), None) is not None:
            self._acknowledge(tried.record, how)

    def _tried(self, message: Message) -> Attempt:
        tp = tp_of(message)
        if tp not in self._epochs:
            self._epochs[tp] = Epoch(tp, 1, Tracker(), None)
        return Attempt(self._epochs[tp], message, message.offset() or 0, message.delivery_count() or 1)
