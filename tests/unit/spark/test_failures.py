"""Spark's stack traces, cut down to sentences. The texts are what Spark 4.0 really said, shortened."""

import pytest

from penstock import App
from penstock.app import Handler
from penstock.errors import ConfigError, HandlerError, PenstockError, ServerError, TopicError
from penstock.spark.failures import query_error, session_error
from penstock.spark.places import log_file
from penstock.spark.session import start_session
from penstock.spark.task import HaltedTaskError

JOB = (
    "An error occurred while calling o285.save.\n: org.apache.spark.SparkException: Job aborted due to stage failure: "
    "Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 6): {cause}\n\n"
    "Driver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2927)\n"
    "Caused by: {cause}\n\tat org.apache.kafka.Some.where(Some.java:1)\n"
)
WORKER = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    'Traceback (most recent call last):\n  File "worker.py", line 2028, in main\n    func()\n{cause}\n'
)
QUERY = "{cause}\n=== Streaming Query ===\nIdentifier: [id = d045a13b]\nLogical Plan:\n~Project [topic#45]\n"


@pytest.fixture
def handler() -> Handler:
    app = App("shop")

    @app.consume("orders", "returns")
    def ship(value: bytes) -> None: ...

    return app.handlers[0]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (
            JOB.format(cause="org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000089 bytes"),
            HandlerError,
            "Handler ship made an output or dead letter that is larger than Kafka takes.",
        ),
        (
            JOB.format(
                cause="org.apache.kafka.common.errors.TimeoutException: Expiring 2 record(s) for ship-out-0:120001 ms "
                "has passed since batch creation"
            ),
            TopicError,
            "Kafka did not take records for topic 'ship-out' of handler ship in time.",
        ),
        (
            JOB.format(
                cause="org.apache.kafka.common.errors.TimeoutException: Topic ship-out not present in metadata after "
                "60000 ms."
            ),
            TopicError,
            "Topic 'ship-out' of handler ship does not exist.",
        ),
        (
            JOB.format(cause="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."),
            HandlerError,
            "A Python process died while it ran handler ship.",
        ),
        (
            WORKER.format(cause="ModuleNotFoundError: No module named 'warehouse'"),
            ConfigError,
            "Handler ship needs the module 'warehouse', which Spark's Python workers do not find.",
        ),
        (
            QUERY.format(
                cause="org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this "
                "topic-partition."
            ),
            TopicError,
            "A topic that handler ship reads (orders, returns) is gone.",
        ),
        (
            QUERY.format(
                cause="Some data may have been lost because they are not available in Kafka any more;\neither the data "
                "was aged out\ntopic was processed.\nReason: Partition orders-1 offset was changed from 6 to 0."
            ),
            TopicError,
            "of orders, returns were deleted before handler ship came to them: Partition orders-1 offset was changed",
        ),
        (
            QUERY.format(
                cause="org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. "
                "Call: listOffsets"
            ),
            ServerError,
            "No Kafka broker answers Spark for handler ship.",
        ),
        (
            JOB.format(cause="java.lang.IllegalStateException: out of luck"),
            ServerError,
            "Spark failed in handler ship: java.lang.IllegalStateException: out of luck",
        ),
        (
            WORKER.format(cause="ZeroDivisionError: division by zero"),
            ServerError,
            "ZeroDivisionError: division by zero",
        ),
        ("", ServerError, "Spark failed in handler ship: no reason was given"),
    ],
)
def test_the_first_cause_is_found_and_said_in_one_line(
    handler: Handler, text: str, kind: type[PenstockError], said: str
) -> None:
    error = query_error(RuntimeError(text), handler)
    assert type(error) is kind
    assert said in error.problem
    assert "\n" not in str(error)


def test_a_halt_arrives_as_the_error_that_it_was(handler: Handler) -> None:
    halted = HandlerError("Handler ship failed on orders[0]@3: ValueError: RecordTooLargeException", hint="Mend it.")
    text = WORKER.format(cause=f"penstock.spark.task.HaltedTaskError: {HaltedTaskError(halted)}")
    error = query_error(RuntimeError(text), handler)
    assert (type(error), error.problem, error.hint) == (HandlerError, halted.problem, halted.hint)


def test_what_is_not_recognised_names_the_log(handler: Handler) -> None:
    assert str(log_file()) in query_error(RuntimeError("who knows"), handler).hint


def test_a_session_that_does_not_start_says_why() -> None:
    text = ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat x"
    assert session_error(RuntimeError(text), "spark://moon:1").problem == "No Spark master answers at 'spark://moon:1'."
    gone = session_error(ConnectionRefusedError(111, "Connection refused"), "local[*]")
    assert gone.problem == "Spark on 'local[*]' is gone: its JVM ended."
    other = session_error(RuntimeError(": java.lang.Error: no\n\tat x"), "local[2]")
    assert other.problem == "Spark did not start on 'local[2]': java.lang.Error: no"


@pytest.mark.parametrize("master", ["", "moon", "local[x]", "local[2", "spark://", "k8s"])
def test_a_wrong_master_is_named_before_anything_starts(master: str) -> None:
    with pytest.raises(ConfigError, match="is not a Spark master"):
        start_session("test", master=master or " ")
