"""A breaker that pauses, in a task: the slice ends, and the next one begins when a record may be tried."""

import pytest

from penstock import Breaker, Retry
from penstock.core.reports.events import BreakerClosed, BreakerOpened
from penstock.core.reports.record_counts import Counts
from spark_tasks import Task, declare, source


@pytest.mark.parametrize(
    "options", [{"order": "partition"}, {"order": "key", "concurrency": 1}, {"order": "none", "concurrency": 1}]
)
def test_an_outage_ends_slices_and_dead_letters_nothing(options: dict[str, object]) -> None:
    calls, failing = 0, 4 if options["order"] == "partition" else 22

    def handle(value: int) -> None:
        nonlocal calls
        calls += 1
        if calls <= failing:
            raise ConnectionError("down")

    breaker = Breaker(then="pause", probe="30s", on=(ConnectionError,))
    handler = declare(handle, dead_letter="dlq", breaker=breaker, retry=Retry(attempts=2, first="1s"), **options)
    records = source(*(b"%d" % number for number in range(6)), keys=[b"%d" % number for number in range(6)])
    task = Task(handler, records)
    assert task.counts == Counts(read=6)
    assert task.rows == []
    kinds = [type(event) for event in task.events]
    assert kinds.count(BreakerOpened) == kinds.count(BreakerClosed) == 1
    assert len(task.slices) > 1


@pytest.mark.parametrize("order", ["partition", "key", "none"])
def test_a_record_of_a_suspected_service_becomes_a_dead_letter_also_if_slices_are_short(order: str) -> None:
    def handle(value: int) -> None:
        if value == 1:
            raise ConnectionError("down for this one")

    breaker = Breaker(then="pause", probe="30s")
    handler = declare(handle, dead_letter="dlq", breaker=breaker, order=order, concurrency=1)
    records = source(*(b"%d" % number for number in range(3)), keys=[b"%d" % number for number in range(3)])
    task = Task(handler, records, seconds=1.0)
    assert task.counts == Counts(read=3, dead_lettered=1)
    assert [row["topic"] for row in task.rows] == ["dlq"]


@pytest.mark.parametrize("order", ["partition", "none"])
def test_a_record_that_always_fails_becomes_a_dead_letter_also_if_slices_are_short(order: str) -> None:
    def handle(value: int) -> None:
        if value == 3:
            raise ValueError("no address")

    handler = declare(handle, dead_letter="dlq", breaker=Breaker(then="pause"), order=order, concurrency=1)
    # As short as slices are if there are many partitions: the breaker doubts for longer.
    task = Task(handler, source(*(b"%d" % number for number in range(6))), seconds=1.0)
    assert [row["topic"] for row in task.rows] == ["dlq"]
    assert BreakerOpened not in map(type, task.events)
