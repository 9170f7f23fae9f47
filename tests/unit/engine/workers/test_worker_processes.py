"""A worker process: the outcome of an attempt that fails there."""

import json
from typing import Any

import process_handlers
from penstock import NO_RETRY, App, Record, Retry
from penstock.app import RECORDS
from penstock.core.failures.outcome import DONE, Failed
from penstock.engine.workers.worker_processes import Child

PATIENT = Retry(attempts=9)


def test_the_retry_of_the_error_s_type_comes_back_with_the_failure() -> None:
    app = App("shop")
    app.consume("orders", workers="process", to="out", retry={ValueError: NO_RETRY, Exception: PATIENT})(json.loads)
    child = Child(app.handlers[0], RECORDS)
    try:
        failure = child(Record("orders", 0, 0, None, b"{"), 1)
        assert isinstance(failure, Failed)
        assert (failure.error_type, failure.retry, failure.final) == ("json.decoder.JSONDecodeError", NO_RETRY, True)
        assert "in raw_decode" in failure.traceback
        child._process.kill()
        child._process.join()
        death = child(Record("orders", 0, 0, None, b"{}"), 1)
        assert death == Failed("WorkerDied", "the worker process died (killed by SIGKILL)", retry=PATIENT)
    finally:
        child.close()


def test_a_time_limit_is_for_one_call_of_a_batch_that_routes_divide() -> None:
    app = App("shop")
    options: dict[str, Any] = {"batch": 10, "workers": "process", "timeout": "2s", "retry": PATIENT}
    app.consume("orders", when=process_handlers.is_even, **options)(process_handlers.take_a_second)
    app.consume("orders", **options)(process_handlers.hang_at_nine)
    child = Child(app.handlers[0], RECORDS)
    try:
        child([Record("orders", 0, 0, None, b"0")], [1])  # it is up
        process = child._process
        records = [Record("orders", 0, number, None, b"%d" % number) for number in range(6)]
        assert child(records, [1] * 6) == [DONE] * 6
        assert child._process is process, "three calls of 1 s were taken for one that is longer than the limit"
        (late,) = child([Record("orders", 0, 9, None, b"9")], [1])
    finally:
        child.close()
    assert isinstance(late, Failed)
    assert (late.error_type, late.retry) == ("TimeoutError", PATIENT)
    assert "Penstock killed its worker process" in late.message


def test_a_worker_process_says_that_the_app_does_not_answer_there() -> None:
    process_handlers.app.consume("orders", workers="process")(process_handlers.ask_the_app)
    child = Child(process_handlers.app.handlers[0], RECORDS)
    try:
        failure = child(Record("orders", 0, 0, None, b""), 1)
    finally:
        child.close()
    assert isinstance(failure, Failed)
    assert failure.error_type == "StateError"
    assert "Handler ask_the_app runs in a worker process, where app.progress()" in failure.message
