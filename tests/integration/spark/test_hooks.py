"""Hooks of an app that runs on Spark: they are called on the driver, and listeners get events of single records."""

import os

from pyspark.sql import SparkSession

from kafka_helpers import MakeTopic, produce, read_values
from penstock import App, Record, Reject, Retry, Skip
from penstock.events import BatchFinished, DeadLettered, Event, Finished, Retried, Skipped


def test_hooks_surround_a_run_and_listeners_get_what_became_of_each_record(
    brokers: str, spark: SparkSession, group: str, make_topic: MakeTopic
) -> None:
    source, app = make_topic(), App(group)
    calls: list[str] = []
    seen: list[Event] = []
    processes: set[int] = set()

    @app.consume(source, to=f"{group}.out", dead_letter=f"{group}.dlq", retry=Retry(attempts=2, first="1ms"))
    def handle(value: int, record: Record) -> int:
        if value == 3:
            raise Reject("three")
        if value == 4:
            raise Skip("four")
        if value == 5 and record.attempt == 1:
            raise OSError("away")
        return value

    def note(name: str) -> None:
        calls.append(name)
        processes.add(os.getpid())

    app.on_start(lambda: note("start"))
    app.on_stop(lambda: note("stop"))

    @app.on_event(Finished, Skipped, DeadLettered, Retried, BatchFinished)
    async def listen(event: Event) -> None:
        seen.append(event)
        processes.add(os.getpid())

    produce(brokers, source, range(10))
    app.run(brokers=brokers, engine="spark", until_caught_up=True)
    assert calls == ["start", "stop"]
    assert processes == {os.getpid()}
    assert [each.offset for each in seen if isinstance(each, Finished)] == [0, 1, 2, 5, 6, 7, 8, 9]
    assert [each.reason for each in seen if isinstance(each, Skipped)] == ["four"]
    assert [(each.offset, each.attempt) for each in seen if isinstance(each, Retried)] == [(5, 1)]
    assert [each.offset for each in seen if isinstance(each, DeadLettered)] == [3]
    assert sum(each.read for each in seen if isinstance(each, BatchFinished)) == 10
    assert len(list(read_values(brokers, f"{group}.out"))) == 8
