"""How long the thread that hands out records can let outcomes gather."""

import pytest

from dispatch_helpers import make_dispatch
from penstock import App, Record
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.dispatching.reporter import Reporter
from penstock.app.dispatching.running_concurrency import RunningConcurrency

TP = ("t", 0)


def running(works: int) -> RunningConcurrency:
    """A handler with 100 at once, of which so many works are out."""
    app = App("g")

    @app.consume("t", concurrency=100)
    def handle(value: bytes) -> None: ...

    (handler,) = app.handlers
    dispatch = make_dispatch(order="none", concurrency=100, max_in_flight=1_000)
    reporter = Reporter(handler, lambda _event: None, member="m", adapter=RecordAdapter(), per_record=False)
    found = RunningConcurrency(handler, dispatch, reporter, None, lambda: 0.0)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, [Record(*TP, offset, None, b"") for offset in range(works)])
    assert sum(map(len, dispatch.take(0.0, 1))) == works
    return found


@pytest.mark.parametrize(
    ("works", "bundle_seconds", "breath"),
    [
        (50, 0.010, 0.0),  # workers wait for records
        (112, 0.010, 0.0),  # few works are queued
        (125, 0.010, 0.001),  # the queue is empty after 2.5 ms
        (125, 0.001, 0.000125),  # the queue is empty after 0.25 ms
        (125, 0.0, 0.0),  # not measured yet
    ],
)
def test_outcomes_gather_for_as_long_as_works_are_queued(works: int, bundle_seconds: float, breath: float) -> None:
    assert running(works).breath(bundle_seconds) == pytest.approx(breath)
