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
