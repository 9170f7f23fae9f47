"""A worker process: the outcome of an attempt that fails there."""

import json

import process_handlers
from penstock import NO_RETRY, App, Record, Retry
from penstock.app import RECORDS
from penstock.core.failures.outcome import Failed
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
