"""Handlers on threads that run longer than their timeout."""

import threading
from typing import Any

from dispatch_helpers import make_dispatch, records
from penstock import App, Record
from penstock.app import RECORDS, work_runner
from penstock.app.attempts.work import Work
from penstock.core.progress.lease import FOREVER
from penstock.engine.dispatch.overdue_detector import OverdueDetector


class Stuck:
    """A handler whose calls wait until the test lets them go."""

    def __init__(self, **options: Any) -> None:
        self.began, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        app = App("shop")
        app.consume("t", timeout="30s", **options)(self.hang_here)
        self.handler = app.handlers[0]

    def hang_here(self, record: Record) -> None:  # noqa: ARG002 - a handler takes something
        self.began.release()
        self.go_on.acquire()


def test_each_attempt_is_reported_once_with_the_stack_of_its_thread() -> None:
    stuck, now = Stuck(), 0.0
    dispatch = make_dispatch()
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    (run,) = (run for bundle in dispatch.take(0.0, 10) for run in bundle)
    work = Work([run], has_dead_letter=True, clock=lambda: now)
    detector = OverdueDetector(stuck.handler)
    worker = threading.Thread(target=work_runner(stuck.handler, RECORDS, FOREVER), args=(work,))
    worker.start()
    for offset in range(2):
        stuck.began.acquire()
        assert detector.look({work}, now) == []
        assert detector.look({work}, now + 29.9) == []
        (late,) = detector.look({work}, now + 30.1)
        assert (late.epoch, late.record.offset, round(late.seconds, 1)) == (run.epoch, offset, 30.1)
        first, *_ = (line for line in late.stack.splitlines() if line.startswith("  File"))
        assert first.endswith("in hang_here"), "Penstock's own frames around the handler are left out"
        assert "self.go_on.acquire()" in late.stack
        assert detector.look({work}, now + 60) == [], "once"
        now += 60
        stuck.go_on.release()
    worker.join()
    assert detector.look({work}, now + 100) == []


def test_async_handlers_and_processes_are_ended_instead() -> None:
    app = App("shop")

    async def handle(value: int) -> None: ...

    app.consume("t", timeout="30s")(handle)
    assert OverdueDetector(app.handlers[0])._limit is None
    assert OverdueDetector(Stuck(workers="process").handler)._limit is None
    assert OverdueDetector(Stuck().handler)._limit == 30
