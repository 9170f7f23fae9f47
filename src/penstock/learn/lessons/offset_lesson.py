"""Lesson 2: position, committed offset, end and lag, on a plain Kafka client."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from penstock.kafka import make_consumer
from penstock.learn.picture import Grid, GridRow, LessonStep, Mark, offset_columns, offsets_row, pointer_row
from penstock.learn.sandbox import Sandbox

_FIRST, _MORE = 10, 4
_FETCHED, _FINISHED = 7, 4
_LEGEND = {Mark.DONE: "finished", Mark.RUNNING: "fetched", Mark.WAITING: "in the log", Mark.POINTER: "this offset"}


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic, group = sandbox.topic("orders"), sandbox.group("billing")
    sandbox.produce(topic, [f"order {n}" for n in range(_FIRST)])
    with _consumer(sandbox, group, topic) as consumer:
        _fetch(sandbox, consumer, _FETCHED)
        consumer.commit(offsets=[TopicPartition(topic, 0, _FINISHED)], asynchronous=False)
        first = _facts(sandbox, consumer, group, topic)
    sandbox.show(_first_step(first))
    sandbox.produce(topic, [f"order {n}" for n in range(_FIRST, _FIRST + _MORE)])
    with _consumer(sandbox, group, topic) as consumer:
        began = _fetch(sandbox, consumer, 1)
        second = _facts(sandbox, consumer, group, topic)
    sandbox.show(_second_step(second, began))
    return {"first": first, "second": second, "next_owner_began_at": began}


@contextmanager
def _consumer(sandbox: Sandbox, group: str, topic: str) -> Iterator[Consumer]:
    consumer = make_consumer(sandbox.brokers, group, settings={})
    try:
        consumer.assign([TopicPartition(topic, 0)])  # starts at the committed offset, or at the start of the log
        yield consumer
    finally:
        consumer.close()


def _fetch(sandbox: Sandbox, consumer: Consumer, count: int) -> int:
    """Fetch exactly so many records, and return the offset of the first."""
    offsets: list[int] = []

    def fetch() -> list[int] | None:
        fetched = consumer.consume(count - len(offsets), 0.2)
        offsets.extend(int(message.offset() or 0) for message in fetched if message.error() is None)
        return offsets if len(offsets) == count else None

    return sandbox.wait_until(fetch, f"{count} records are fetched")[0]


def _facts(sandbox: Sandbox, consumer: Consumer, group: str, topic: str) -> dict[str, int]:
    position = consumer.position([TopicPartition(topic, 0)])[0].offset
    committed, end = sandbox.committed(group, topic) or 0, sandbox.end(topic)
    return {"position": position, "committed": committed, "end": end, "lag": end - committed}


def _grid(title: str, facts: dict[str, int]) -> Grid:
    width = facts["end"] + 1
    marks = dict.fromkeys(range(facts["committed"]), Mark.DONE)
    marks |= dict.fromkeys(range(facts["committed"], facts["position"]), Mark.RUNNING)
    log = offsets_row("log", facts["end"], marks)
    return Grid(
        title,
        offset_columns(width),
        (
            GridRow(log.label, (*log.cells, Mark.NOTHING)),
            *(pointer_row(name, facts[name], width=width) for name in ("committed", "position", "end")),
        ),
        _LEGEND,
    )


def _first_step(facts: dict[str, int]) -> LessonStep:
    return LessonStep(
        "Three offsets of one partition",
        f"A consumer fetched {_FETCHED} of {_FIRST} records, finished {_FINISHED}, and committed offset {_FINISHED}: "
        "the first that it has not finished.",
        (_grid("orders, partition 0", facts),),
        f"The position {facts['position']} is the next offset to fetch, and only the consumer knows it. The committed "
        f"offset {facts['committed']} is what Kafka keeps. The end {facts['end']} is the offset of the next record "
        f"that a producer writes. The lag is end - committed = {facts['lag']}.",
    )


def _second_step(facts: dict[str, int], began: int) -> LessonStep:
    return LessonStep(
        "The next consumer begins at the committed offset",
        f"The first consumer has ended. A producer wrote {_MORE} more records. Another consumer of the group fetched "
        "one record.",
        (_grid("orders, partition 0", facts),),
        f"It began at offset {began}: what the first one had fetched and not committed is delivered again. The lag "
        f"has grown to {facts['lag']}, because nobody commits while the producer writes.",
    )
