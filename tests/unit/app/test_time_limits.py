"""The limit of ``timeout=`` around the function of a handler."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from penstock import App
from penstock.app import RECORDS, Handler, attempts, end_task
from penstock.app.attempts.attempt import attempts_async
from penstock.app.attempts.time_limit import within_limit
from penstock.core.failures.outcome import Failed
from penstock.core.records.record import Record
from penstock.errors import ConfigError

RECORD = Record("orders", 0, 0, None, b"1")


def declared(function: Any, **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", **options)(function)
    return app.handlers[0]


def test_without_a_timeout_the_function_is_called_itself() -> None:
    def handle(value: int) -> None: ...

    assert within_limit(declared(handle), RECORDS) is handle


@pytest.mark.parametrize("timeout", [0, "0s", -1, "soon"])
def test_a_timeout_must_leave_time(timeout: Any) -> None:
    def handle(value: int) -> None: ...

    with pytest.raises(ConfigError, match="timeout"):
        declared(handle, timeout=timeout)


def test_a_task_that_penstock_ends_is_not_taken_for_one_that_is_late() -> None:
    started = asyncio.Event()

    async def handle(value: int) -> None:
        started.set()
        await asyncio.Event().wait()

    async def main() -> None:
        attempt = attempts_async(declared(handle, timeout="1h"))
        task = asyncio.ensure_future(attempt(RECORD, 1))
        await started.wait()
        end_task(task)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_after_a_late_attempt_the_task_can_wait_again() -> None:
    async def handle(value: int) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        attempt = attempts_async(declared(handle, timeout=0.001))
        for _ in range(2):
            outcome = await attempt(RECORD, 1)
            assert isinstance(outcome, Failed)
            assert outcome.error_type == "TimeoutError"
            assert outcome.message.endswith("its timeout of 0.001 s: Penstock cancelled it")
            assert "await asyncio.Event().wait()" in outcome.traceback
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_the_error_of_a_late_thread_is_the_cause_of_its_time_out() -> None:
    clock = iter([0.0, 40.0])

    def handle(value: int) -> None:
        raise ValueError("too late anyway")

    attempt = attempts(declared(handle, timeout="30s"), replace(RECORDS, clock=lambda: next(clock)))
    outcome = attempt(RECORD, 1)
    assert isinstance(outcome, Failed)
    assert (outcome.error_type, outcome.message) == (
        "TimeoutError", "the handler took longer than its timeout of 30 s: it raised an error after 40.0 s",
    )  # fmt: skip
    assert "ValueError: too late anyway" in outcome.traceback
