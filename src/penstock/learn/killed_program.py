"""The program that lessons start and kill: ``python -m penstock.learn.killed_program`` with its task as JSON.

It assigns its partition to itself, because a group would wait for the session timeout of a killed member. It stops at
one record as if its work took forever, and ends when the lesson closes its standard input.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NoReturn

from confluent_kafka import Consumer, TopicPartition

from penstock.app import App
from penstock.app.options import Delivery
from penstock.core.records.record import Record

_COMMITS: Mapping[str, Mapping[str, Any]] = {
    "as usual": {},
    "each record": {"commit": "record"},
    "never": {"commit_every": "24h"},  # longer than any lesson
}


@dataclass(frozen=True, kw_only=True)
class KilledTask:
    """What the program consumes, and where it stops. Without ``auto_commit_ms`` it is an app of Penstock."""

    brokers: str
    topic: str
    group: str
    stop_at: int | None = None
    auto_commit_ms: int | None = None
    fetch: int = 0
    to: str | None = None
    delivery: Delivery = "at-least-once"
    commits: Literal["as usual", "each record", "never"] = "as usual"

    def as_text(self) -> str:
        return json.dumps(asdict(self))


def numbering_app(task: KilledTask, handled: Callable[[int], None]) -> App:
    """An app that handles the records of the partition in order, and writes each to ``to``."""
    app = App(task.group)
    options: dict[str, Any] = {
        "partitions": [(task.topic, 0)],
        "order": "partition",
        "delivery": task.delivery,
        **_COMMITS[task.commits],
    }

    def work(offset: int) -> None:
        if offset == task.stop_at:
            threading.Event().wait()
        handled(offset)

    def handle(record: Record) -> None:
        work(record.offset)

    def write(value: str, record: Record) -> str:
        work(record.offset)
        return value

    app.consume(**options)(handle) if task.to is None else app.consume(to=task.to, **options)(write)
    return app


def consume_with_auto_commit(task: KilledTask, handled: Callable[[int], None]) -> NoReturn:
    """A loop as many programs have it: the client commits what it has handed over, finished or not."""
    consumer = Consumer(
        {
            "bootstrap.servers": task.brokers,
            "group.id": task.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": True,
            "auto.commit.interval.ms": task.auto_commit_ms,
        }
    )
    consumer.assign([TopicPartition(task.topic, 0)])
    fetched: list[int] = []
    while len(fetched) < task.fetch:
        messages = consumer.consume(task.fetch - len(fetched), 0.2)
        fetched += [int(message.offset() or 0) for message in messages if message.error() is None]
    for offset in fetched:
        if offset == task.stop_at:
            break
        handled(offset)
    while True:
        threading.Event().wait()


def _note(offset: int) -> None:
    sys.stdout.write(f"{offset}\n")
    sys.stdout.flush()


def _end_with_the_lesson() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    task = KilledTask(**json.loads(sys.argv[1]))
    threading.Thread(target=_end_with_the_lesson, daemon=True).start()
    if task.auto_commit_ms is not None:
        consume_with_auto_commit(task, _note)
    numbering_app(task, _note).run(brokers=task.brokers)


if __name__ == "__main__":
    main()
