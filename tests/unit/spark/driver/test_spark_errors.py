"""Spark's stack traces become short sentences. The texts are shortened errors of Spark 4.0."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock import App
from penstock.app import Handler
from penstock.core.progress.slices import Slice
from penstock.errors import ConfigError, HandlerError, PenstockError, ServerError, TopicError
from penstock.kafka.errors import translate
from penstock.paths import spark_log_file
from penstock.spark.driver.spark_errors import (
    executors_error,
    job_failure,
    planning_failure,
    query_failure,
    session_error,
)
from penstock.spark.halted_task import HaltedTaskError
from penstock.spark.pipelines.output_batches import Output
from penstock.spark.session.spark_session import start_session

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
            "A topic that handler ship reads (orders, returns) does not exist any more.",
        ),
        (
            QUERY.format(
                cause="Some data may have been lost because they are not available in Kafka any more;\neither the data "
                "was aged out\ntopic was processed.\nReason: Partition orders-1 offset was changed from 6 to 0."
            ),
            TopicError,
            "of orders, returns were deleted before handler ship read them: Partition orders-1 offset was changed",
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
    error = query_failure(RuntimeError(text), handler).error
    assert type(error) is kind
    assert said in error.problem
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "may_pass"),
    [
        (JOB.format(cause="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."), True),
        (JOB.format(cause="org.apache.kafka.common.errors.TimeoutException: Expiring 2 record(s) for a-0:1 ms"), True),
        (JOB.format(cause="ExecutorLostFailure (executor 1 exited caused by one of the running tasks)"), True),
        (QUERY.format(cause="org.apache.kafka.common.errors.UnknownTopicOrPartitionException: no such"), True),
        (QUERY.format(cause="Some data may have been lost because\nReason: Partition orders-1 was gone"), True),
        (QUERY.format(cause="org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node"), True),
        (
            QUERY.format(
                cause="org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: "
                "[Topic authorization failed.]"
            ),
            False,
        ),
        (QUERY.format(cause="org.apache.kafka.common.errors.SaslAuthenticationException: wrong password"), False),
        (JOB.format(cause="org.apache.kafka.common.errors.RecordTooLargeException: The message is large"), False),
        (JOB.format(cause="java.lang.OutOfMemoryError: Java heap space"), False),
        (WORKER.format(cause="ModuleNotFoundError: No module named 'warehouse'"), False),
        (WORKER.format(cause="AttributeError: Can't get attribute 'ship' on <module 'shop'>"), False),
        (JOB.format(cause="java.io.IOException: Connection reset by peer"), True),
    ],
)
def test_another_try_is_made_only_where_it_may_help(handler: Handler, text: str, *, may_pass: bool) -> None:
    assert query_failure(RuntimeError(text), handler).may_pass == may_pass


def test_a_halted_handler_and_what_is_denied_are_not_tried_again(handler: Handler) -> None:
    halted = HaltedTaskError(HandlerError("Handler ship failed.", hint="Mend it."))
    text = JOB.format(cause="x") + WORKER.format(cause=f"penstock.spark.halted_task.HaltedTaskError: {halted}")
    assert not query_failure(RuntimeError(text), handler).may_pass


def planning_error(code: int) -> PenstockError:
    """An error as the methods of ``Cluster`` raise it."""
    try:
        raise translate(KafkaException(KafkaError(code)), doing="planning", brokers="x:1") from KafkaException(
            KafkaError(code)
        )
    except PenstockError as error:
        return error


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (planning_error(KafkaError._TRANSPORT), True),
        (planning_error(KafkaError.GROUP_AUTHORIZATION_FAILED), False),
        (planning_error(KafkaError.UNKNOWN_TOPIC_OR_PART), True),
        (TopicError("Topic 'orders' does not exist."), True),
        (ConfigError("Handlers share a topic."), False),
    ],
)
def test_a_plan_is_tried_again_where_the_cluster_may_come_back(error: PenstockError, *, may_pass: bool) -> None:
    assert planning_failure(error).may_pass == may_pass


def test_a_halt_arrives_as_the_error_that_it_was(handler: Handler) -> None:
    halted = HandlerError("Handler ship failed on orders[0]@3: ValueError: RecordTooLargeException", hint="Mend it.")
    text = WORKER.format(cause=f"penstock.spark.halted_task.HaltedTaskError: {HaltedTaskError(halted)}")
    error = query_failure(RuntimeError(text), handler).error
    assert (type(error), error.problem, error.hint) == (HandlerError, halted.problem, halted.hint)


def test_python_code_of_a_pipeline_that_raises_is_named_with_its_place() -> None:
    trace = (
        '  File "/opt/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 1227, in main\n    process()\n'
        '  File "/home/me/shop.py", line 12, in shout\n    return 1 / 0\nZeroDivisionError: division by zero\n'
    )
    text = JOB.format(
        cause=WORKER.partition("Traceback")[0] + f"Traceback (most recent call last):\n{trace}\n\tat org.a.B"
    )
    failure = query_failure(RuntimeError(text), Output("copy", "shop", ("orders",), 30.0))
    assert not failure.may_pass
    assert type(failure.error) is HandlerError
    assert failure.error.problem == (
        "Pipeline copy stopped because its Python code raised ZeroDivisionError: division by zero in shout "
        "(/home/me/shop.py, line 12)."
    )


def test_a_pipeline_is_not_called_a_handler() -> None:
    text = JOB.format(cause="org.apache.kafka.common.errors.RecordTooLargeException: The message is large")
    error = query_failure(RuntimeError(text), Output("copy", "shop", ("orders",), 30.0)).error
    assert error.problem == "Pipeline copy made an output or dead letter that is larger than Kafka takes."
    unknown = query_failure(RuntimeError("who knows"), Output("copy", "shop", ("orders",), 30.0)).error
    assert unknown.problem == "Spark failed in pipeline copy: who knows"


def test_what_is_not_recognised_names_the_log(handler: Handler) -> None:
    assert str(spark_log_file()) in query_failure(RuntimeError("who knows"), handler).error.hint


def test_a_session_that_does_not_start_says_why() -> None:
    text = ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat x"
    assert session_error(RuntimeError(text), "spark://moon:1").problem == "No Spark master answers at 'spark://moon:1'."
    gone = session_error(ConnectionRefusedError(111, "Connection refused"), "local[*]")
    assert gone.problem == "Spark on 'local[*]' ended: its JVM does not run any more."
    pods = (
        ": org.apache.spark.SparkException: External scheduler cannot be instantiated\nCaused by: "
        "io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.\nCaused by: "
        "java.net.ConnectException: Connection refused"
    )
    assert session_error(RuntimeError(pods), "k8s://x").problem.startswith(
        "The Kubernetes at 'k8s://x' does not answer"
    )
    other = session_error(RuntimeError(": java.lang.Error: no\n\tat x"), "local[2]")
    assert other.problem == "Spark did not start on 'local[2]': java.lang.Error: no"


@pytest.mark.parametrize("master", ["", "moon", "local[x]", "local[2", "spark://", "k8s"])
def test_a_wrong_master_is_named_before_anything_starts(master: str) -> None:
    with pytest.raises(ConfigError, match="is not a Spark master"):
        start_session("test", master=master or " ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            JOB.format(
                cause="org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
                "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
            ),
            "Executors run Python 3.12, and this machine runs Python 3.11. Spark needs the same version on both sides.",
        ),
        (
            JOB.format(
                cause='java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file'
            ),
            "Executors have no Python at './environment/bin/python'.",
        ),
        (
            JOB.format(cause="java.lang.Error: no"),
            "The executors of 'spark://moon:1' run no Python: java.lang.Error: no",
        ),
    ],
)
def test_executors_that_cannot_run_python_are_reported_with_the_reason(text: str, said: str) -> None:
    assert executors_error(RuntimeError(text), "spark://moon:1").problem == said


def test_a_java_error_whose_jvm_is_gone_says_only_that() -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError(111, "Connection refused")

    assert (
        session_error(SpeechlessError(), "local[*]").problem
        == "Spark on 'local[*]' ended: its JVM does not run any more."
    )


def test_a_job_that_dies_names_the_records_that_it_handled(handler: Handler) -> None:
    text = JOB.format(cause="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).")
    slices = [Slice(("orders", 3), 100, 600), Slice(("orders", 4), 0, 10), Slice(("orders", 5), 0, 10)]
    one, several = (job_failure(RuntimeError(text), handler, each).error.problem for each in (slices[:1], slices))
    assert one == "A Python process died while it ran handler ship (orders[3], offsets 100 to 599)."
    assert several.endswith("handler ship (orders[3], offsets 100 to 599, and 2 more slices).")


def test_a_task_that_a_newer_attempt_has_fenced_may_run_again(handler: Handler) -> None:
    fenced = ServerError("Another producer with the same transactional id took over.", hint="Wait.")
    text = WORKER.format(cause=f"penstock.spark.halted_task.HaltedTaskError: {HaltedTaskError(fenced)}")
    failure = job_failure(RuntimeError(text), handler)
    assert (failure.may_pass, failure.error.problem) == (True, fenced.problem)


def test_an_error_of_python_code_is_recognised_in_a_job_without_a_data_frame(handler: Handler) -> None:
    cause = (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "/srv/shop.py", line 7, in ship\n    int("x")\nValueError: invalid literal'
    )
    failure = job_failure(RuntimeError(JOB.format(cause=cause)), handler)
    assert not failure.may_pass
    assert failure.error.problem.startswith(
        "Handler ship stopped because its Python code raised ValueError: invalid literal in ship (/srv/shop.py, line 7)"
    )
