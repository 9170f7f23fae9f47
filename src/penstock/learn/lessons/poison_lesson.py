"""Lesson 7: a poison record."""

import json
from typing import Any

from confluent_kafka import TopicPartition

from penstock.app import App
from penstock.core.failures.dead_letter_headers import DeadLetterInfo, read_dead_letter_info
from penstock.core.failures.retry import Retry
from penstock.core.records.record import Record
from penstock.kafka import make_consumer
from penstock.learn.picture import FactTable, Grid, GridRow, LessonStep, Mark, offset_columns, pointer_row
from penstock.learn.sandbox import Sandbox

_RECORDS = 8
_BROKEN = 2
"""Its value is not JSON."""
_FAILING = 5
"""The handler raises an error for it."""
_STARTS = 3


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic = sandbox.topic("orders")
    sandbox.produce(topic, [_value(number) for number in range(_RECORDS)])
    stuck = sandbox.group("loop")
    attempts = [_loop_until_an_error(sandbox, topic, stuck) for _ in range(_STARTS)]
    sandbox.show(_loop_step(attempts, sandbox.committed(stuck, topic) or 0))
    group, letters = sandbox.group("shop"), sandbox.name("orders.dlq")
    handled: list[int] = []
    sandbox.catch_up(_app(topic, group, letters, handled))
    notes = [read_dead_letter_info(record.headers) for record in sandbox.read(letters)]
    committed = sandbox.committed(group, topic)
    sandbox.show(_app_step(handled, notes, committed or 0))
    sandbox.show(_letters_step(notes))
    return {
        "loop": {"failed_at": attempts, "committed": sandbox.committed(stuck, topic)},
        "penstock": {
            "handled": sorted(handled),
            "committed": committed,
            "dead_letters": [
                {"offset": note.offset, "attempts": note.attempts, "error": note.error_type} for note in notes
            ],
        },
    }


def _value(number: int) -> str:
    return "{not JSON" if number == _BROKEN else json.dumps({"id": number})


def _loop_until_an_error(sandbox: Sandbox, topic: str, group: str) -> int:
    """A plain poll loop that commits after each record; return the offset at which it ends with an error."""
    consumer = make_consumer(sandbox.brokers, group, settings={})
    try:
        consumer.assign([TopicPartition(topic, 0)])
        while True:
            message = sandbox.wait_until(lambda: consumer.poll(0.2), "a record arrives")
            if message.error() is not None:
                continue
            try:
                json.loads(message.value() or b"")
            except ValueError:
                return int(message.offset() or 0)
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


def _app(topic: str, group: str, letters: str, handled: list[int]) -> App:
    app = App(group)

    @app.consume(topic, order="partition", dead_letter=letters, retry=Retry(attempts=3, first="50ms", jitter=0))
    def handle(order: dict[str, int], record: Record) -> None:
        if order["id"] == _FAILING:
            raise RuntimeError("the warehouse does not know this order")
        handled.append(record.offset)

    return app


def _loop_step(attempts: list[int], committed: int) -> LessonStep:
    marks = [
        Mark.DONE if offset < committed else Mark.FAILED if offset in attempts else Mark.WAITING
        for offset in range(_RECORDS)
    ]
    rows = (GridRow("orders", tuple(marks)), pointer_row("committed", committed, width=_RECORDS))
    legend = {Mark.DONE: "handled", Mark.FAILED: "fails", Mark.WAITING: "not read", Mark.POINTER: "committed"}
    return LessonStep(
        "A poll loop and a record that it cannot read",
        f"The value at offset {_BROKEN} is not JSON. A plain loop was started {len(attempts)} times; it ended with an "
        f"error at offset {', '.join(map(str, attempts))}.",
        (Grid("orders, partition 0", offset_columns(_RECORDS), rows, legend),),
        "Each start fails at the same record, and everything behind it waits. This is a poison record.",
    )


def _app_step(handled: list[int], notes: list[DeadLetterInfo], committed: int) -> LessonStep:
    dead = {note.offset for note in notes}
    marks = [
        Mark.DONE if offset in handled else Mark.FAILED if offset in dead else Mark.WAITING
        for offset in range(_RECORDS)
    ]
    rows = (
        GridRow("orders", (*marks, Mark.NOTHING)),
        pointer_row("committed", committed, width=_RECORDS + 1),
    )
    legend = {Mark.DONE: "handled", Mark.FAILED: "dead letter", Mark.POINTER: "committed"}
    return LessonStep(
        "The same topic, a Penstock app with dead_letter=",
        f"The handler also fails for offset {_FAILING}, with an error that a retry could cure.",
        (Grid("orders, partition 0", offset_columns(_RECORDS + 1), rows, legend),),
        f"{len(handled)} records are handled and {len(dead)} are dead letters; nothing waits. The committed offset is "
        "at the end.",
    )


def _letters_step(notes: list[DeadLetterInfo]) -> LessonStep:
    rows = tuple(
        (str(note.offset), str(note.attempts), note.reason, note.message.splitlines()[0] if note.message else "")
        for note in notes
    )
    return LessonStep(
        "What the dead letters say",
        "The topic orders.dlq has each failed record unchanged, with the reason in its headers.",
        (FactTable("orders.dlq", ("offset", "attempts", "error", "message"), rows),),
        "A value that cannot be read fails at once: it would never succeed. The other error was retried first. "
        "`penstock dlq ls` shows dead letters, and `penstock dlq replay` sends them again once the cause is gone.",
    )
