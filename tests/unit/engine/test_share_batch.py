"""The records of one poll of a share group, without a broker."""

from queue import SimpleQueue
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType

from penstock import App, Record
from penstock.app import RecordAdapter, attempts
from penstock.app.dispatching.reporter import Reporter
from penstock.core.scheduling.effects import Send
from penstock.engine.dispatch.thread_messages import Delivered
from penstock.engine.share.acquired_records import AcquiredRecords
from penstock.engine.share.share_workers import Attempted

REJECT, RELEASE = AcknowledgeType.REJECT, AcknowledgeType.RELEASE


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def delivery_count(self) -> int:
        return 1


READING = RecordAdapter(
    to_record=lambda message, attempt: Record("orders", 0, message.offset(), None, b"1", attempt=attempt)
)


class Outbox:
    """A broker that accepts everything at once."""

    is_full = False

    def __init__(self, inbox: SimpleQueue[Any]) -> None:
        self._inbox = inbox
        self.sent: list[Send] = []

    def send(self, sends: list[Send]) -> None:
        self.sent += sends
        self._inbox.put(Delivered(sends))


def settled(function: Any) -> tuple[AcquiredRecords, list[Send], list[AcknowledgeType]]:
    app = App("shop")
    app.consume("orders", mode="share", order="none", dead_letter="dlq")(function)
    (handler,) = app.handlers
    inbox: SimpleQueue[Any] = SimpleQueue()
    outbox, attempt = Outbox(inbox), attempts(handler, READING)
    batch = AcquiredRecords(
        handler,
        inbox,
        outbox,  # type: ignore[arg-type]
        Reporter(handler, print, member="m", adapter=READING, per_record=False),
        adapter=READING,
        acknowledge=lambda _message, how: acknowledged.append(how),
        deliveries=1,
    )
    acknowledged: list[AcknowledgeType] = []
    messages: list[Any] = [Message(7), Message(8)]
    for message in messages:
        inbox.put(Attempted(message, attempt(message, 1)))
    batch.settle(messages, give_up=lambda: False)
    return batch, outbox.sent, acknowledged


def acknowledge_in_vain(record: Record) -> None:
    record.ack()


def interrupt(record: Record) -> None:
    raise KeyboardInterrupt


def fail(record: Record) -> None:
    raise ValueError("no such order")


@pytest.mark.parametrize(("function", "error"), [(acknowledge_in_vain, "HandlerBug"), (interrupt, "KeyboardInterrupt")])
def test_a_bug_or_an_interruption_stops_the_member_and_gives_its_records_back(function: Any, error: str) -> None:
    batch, sent, acknowledged = settled(function)
    assert batch.error is not None
    assert f"failed on orders[0]@7, attempt 1: {error}" in batch.error.problem
    assert f"in {function.__name__}" in batch.error.traceback
    assert (sent, acknowledged) == ([], [RELEASE, RELEASE])


def test_any_other_error_is_a_dead_letter_with_its_traceback() -> None:
    batch, sent, acknowledged = settled(fail)
    assert batch.error is None
    assert acknowledged == [REJECT, REJECT]
    assert b"in fail" in (dict(sent[0].outgoing.headers)["penstock-dlq-traceback"] or b"")
