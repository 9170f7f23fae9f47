"""Translates Spark's errors into errors that say what to do.

Spark wraps an error in several others, with a stack trace of hundreds of lines. The tables below recognise an error by
its text. The whole trace is in the log.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.progress.slices import Slice
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError, HandlerError, PenstockError, ServerError, SetupError, TopicError
from penstock.kafka.errors import is_final, kafka_error
from penstock.paths import spark_log_file
from penstock.spark.driver.declared import Declared
from penstock.spark.halted_task import HaltedTaskError
from penstock.spark.internals import JvmError

_Row = tuple[str, type[PenstockError], str, str]

TOO_LARGE = (
    "{What} made an output or dead letter that is larger than Kafka takes.",
    "Raise max.message.bytes of the topic and message.max.bytes in settings, or return less.",
)

# Each row: a pattern, the class of the error, what happened, what to do. `{0}` is the first group of the pattern. The
# first row that matches counts. These errors stay until somebody fixes their cause.
_LASTING: tuple[_Row, ...] = (
    (
        r"(\w+AuthorizationException): ([^\n]+)",
        ServerError,
        "The broker denied something to Spark for {what}: {1}",
        "Ask for an ACL: READ and DESCRIBE on what is consumed, WRITE on outputs and dead letters.",
    ),
    (
        r"(?:SaslAuthentication|SslAuthentication|Authentication)Exception: ([^\n]+)",
        ServerError,
        "The broker did not accept Spark's login for {what}: {0}",
        "Check security.protocol, sasl.mechanism, sasl.username, sasl.password and ssl.* in settings.",
    ),
    (
        r"RecordTooLargeException",
        HandlerError,
        *TOO_LARGE,
    ),
    (
        r"ModuleNotFoundError: No module named '([^']+)'",
        ConfigError,
        "{What} needs the module {0!r}, which Spark's Python workers do not find.",
        "Install it where the workers run; `penstock ship MODULE:APP` lists what is shipped and what is not.",
    ),
    (
        r"OutOfMemoryError",
        SetupError,
        "Spark ran out of memory in {what}.",
        "Give it more in the environment: PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'.",
    ),
)
# The next attempt may succeed after these errors.
_PASSING: tuple[_Row, ...] = (
    (
        r"Expiring \d+ record\(s\) for (\S+)-\d+:",
        TopicError,
        "Kafka did not take records for topic {0!r} of {what} in time.",
        "Check that the topic exists and that its brokers are up.",
    ),
    (
        r"Topic (\S+) not present in metadata",
        TopicError,
        "Topic {0!r} of {what} does not exist.",
        "Create it, or check its name.",
    ),
    (
        r"Python worker exited unexpectedly",
        HandlerError,
        "A Python process died while it ran {what}.",
        "A crash in a native library, too little memory or os._exit causes that; its last output is in {log}.",
    ),
    (
        r"UnknownTopicOrPartitionException",
        TopicError,
        "A topic that {what} reads ({topics}) does not exist any more.",
        "Create it, or check its name, then start again.",
    ),
    (
        r"Some data may have been lost.*\s*Reason: ([^\n]+)",
        TopicError,
        "Records of {topics} were deleted before {what} read them: {0}",
        "Start again to continue with the remaining records.",
    ),
    (
        r"TimeoutException|DisconnectException|No resolvable bootstrap urls",
        ServerError,
        "No Kafka broker answers Spark for {what}.",
        "Check that the brokers are up and reachable; details are in {log}.",
    ),
)
# The text before an error of Python code in a worker: that of a DataFrame, and that of an RDD.
_FROM_PYTHON = re.compile(r"An exception was thrown from the Python worker|api\.python\.PythonException: ")
_FILE = re.compile(r'^  File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)
_PYSPARK = re.compile(r"[/\\]pyspark[/\\]|pyspark\.zip|^worker\.py$")

_OF_SESSIONS: tuple[_Row, ...] = (
    (
        r"Failed to find data source: kafka",
        SetupError,
        "This Spark session does not have Spark's Kafka connector.",
        "Start it with what `penstock ship MODULE:APP` lists: spark-submit --packages ...",
    ),
    (
        r"All masters are unresponsive|stopped SparkContext",
        ServerError,
        "No Spark master answers at {master!r}.",
        "Check that it is running and reachable; details are in {log}.",
    ),
    (
        r"KubernetesClientException",
        ServerError,
        "The Kubernetes at {master!r} does not answer, or refuses access.",
        "Check that kubectl reaches it from here with the same rights; details are in {log}.",
    ),
    (
        r"SparkContext was shut down",
        ServerError,
        "The cluster at {master!r} has ended this session.",
        "It does so when executors keep dying: see their logs there; details are in {log}.",
    ),
    (
        r"Connection refused|Connection reset|Broken pipe|Answer from Java side is empty|while sending or receiving",
        ServerError,
        "Spark on {master!r} ended: its JVM does not run any more.",
        "A master that does not answer or too little memory causes that; details are in {log}.",
    ),
)
_ANOTHER_PYTHON = (
    "Name one that they have: --spark-conf spark.pyspark.python=PATH, or send an environment (docs/spark-clusters.md)."
)
_OF_EXECUTORS: tuple[_Row, ...] = (
    (
        r"PYTHON_VERSION_MISMATCH.*?different version: ([\d.]+) than that in driver: ([\d.]+)",
        SetupError,
        "Executors run Python {0}, and this machine runs Python {1}. Spark needs the same version on both sides.",
        _ANOTHER_PYTHON,
    ),
    (
        r'Cannot run program "([^"]+)"',
        SetupError,
        "Executors have no Python at {0!r}.",
        _ANOTHER_PYTHON,
    ),
)


@dataclass(frozen=True)
class QueryFailure:
    """The error that ended a query, or kept it from starting, and whether another attempt may succeed."""

    error: PenstockError
    may_pass: bool


def query_failure(error: Exception, handler: Declared) -> QueryFailure:
    """Translate the error that ended a query, or a batch of it."""
    text = _words(error)
    words = {**named(handler), "topics": handler.source}
    halted = HaltedTaskError.find(text)
    if halted is not None:
        # A lost transaction can be repeated; a handler's exception would be raised again.
        return QueryFailure(halted, may_pass=type(halted) is ServerError)
    lasting = _look_up(text, _LASTING, **words)
    if lasting is not None:
        return QueryFailure(lasting, may_pass=False)
    passing = _look_up(text, _PASSING, **words)
    if passing is not None:
        return QueryFailure(passing, may_pass=True)
    # Python code would raise its error again; an error of Spark itself may be about a machine or the network.
    from_python = _FROM_PYTHON.search(text) is not None
    if from_python and handler.kind == "pipeline":  # a handler's exceptions arrive as HaltedTaskError
        return QueryFailure(_raised(text, words["What"]), may_pass=False)
    return QueryFailure(_unknown(f"Spark failed in {words['what']}: {_innermost(text)}"), may_pass=not from_python)


def job_failure(error: Exception, handler: Declared, slices: Sequence[Slice] = ()) -> QueryFailure:
    """Translate the error of a job that ran these slices. Tasks return their own errors, so this one is about Spark.

    The only exception is the error of a task whose place another attempt has taken.
    """
    text = _words(error)
    halted = HaltedTaskError.find(text)
    if halted is not None:
        return QueryFailure(halted, may_pass=True)
    where = _where(slices)
    words = {**{name: f"{text}{where}" for name, text in named(handler).items()}, "topics": handler.source}
    for table, passes in ((_LASTING, False), (_OF_SESSIONS, False), (_PASSING, True)):
        known = _look_up(text, table, master="this session", **words)
        if known is not None:
            return QueryFailure(known, may_pass=passes)
    if _FROM_PYTHON.search(text) or not text:
        return QueryFailure(_raised(text, words["What"]), may_pass=False)
    return QueryFailure(_unknown(f"Spark failed in {words['what']}: {_innermost(text)}"), may_pass=True)


def _where(slices: Sequence[Slice]) -> str:
    """Say which records a job handled: the one that killed its Python process is among them."""
    if not slices:
        return ""
    (topic, partition), first, last = slices[0].tp, slices[0].start, slices[0].end - 1
    more = f", and {counted(len(slices) - 1, 'more slice')}" if len(slices) > 1 else ""
    return f" ({topic}[{partition}], offsets {first} to {last}{more})"


def named(handler: Declared) -> dict[str, str]:
    """Return its name for the middle and for the start of a sentence."""
    what = f"{handler.kind} {handler.name}"
    return {"what": what, "What": what[0].upper() + what[1:]}


def planning_failure(error: PenstockError) -> QueryFailure:
    """Classify the error that kept a query from being planned; a missing topic may be created later."""
    inner = None if error.__cause__ is None else kafka_error(error.__cause__)
    lasting = isinstance(error, ConfigError) or (inner is not None and is_final(inner))
    return QueryFailure(error, may_pass=isinstance(error, TopicError) or not lasting)


def session_error(error: Exception, master: str) -> PenstockError:
    """Translate the error that kept a session from starting, or ended it."""
    text = _words(error)
    known = _look_up(text, _OF_SESSIONS, master=master)
    return known or _unknown(f"Spark did not start on {master!r}: {_innermost(text)}")


def executors_error(error: Exception, master: str) -> PenstockError:
    """Translate the error that kept executors from running the check."""
    text = _words(error)
    known = _look_up(text, _OF_EXECUTORS + _OF_SESSIONS, master=master)
    return known or _unknown(f"The executors of {master!r} run no Python: {_innermost(text)}")


def _look_up(text: str, table: tuple[_Row, ...], **words: str) -> PenstockError | None:
    for pattern, kind, problem, hint in table:
        found = re.search(pattern, text, re.DOTALL)
        if found:
            groups, log = found.groups(default=""), spark_log_file()
            return kind(problem.format(*groups, log=log, **words), hint=hint.format(*groups, log=log, **words))
    return None


def _raised(text: str, what: str) -> HandlerError:
    """Name the exception that the user's Python code raised in a worker, and its line."""
    trace = _FROM_PYTHON.split(text, maxsplit=1)[-1].partition("\n\n")[0]
    lines = [line for line in trace.splitlines() if re.match(r"[A-Za-z_][\w.]*(:|$)", line)]
    error = lines[-1] if lines else _innermost(text)
    frames = [found for found in _FILE.findall(trace) if not _PYSPARK.search(found[0])]
    where = " in {2} ({0}, line {1})".format(*frames[-1]) if frames else ""
    return HandlerError(
        f"{what} stopped because its Python code raised {error.rstrip('.')}{where}.",
        hint="Fix that code, then start again: nothing of this batch is committed. "
        f"The traceback is in {spark_log_file()}.",
    )


def _unknown(problem: str) -> PenstockError:
    return ServerError(problem, hint=f"Details are in {spark_log_file()}.")


def _words(error: Exception) -> str:
    """Return the error's text. That of a Java error is fetched from the JVM, which may have ended."""
    try:
        return str(error)
    except (ConnectionError, JvmError):
        return f"{type(error).__name__}: Connection refused"


def _innermost(text: str) -> str:
    """Return the line with the first cause: Java's last `Caused by`, or the last line of a Python traceback."""
    causes = re.findall(r"^(?:Caused by: |: )([^\n]+)", text, re.MULTILINE)
    python = re.findall(r"^\w[\w.]*(?:Error|Exception|Interrupt): [^\n]*", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (causes or python or lines[:1] or ["no reason was given"])[-1]
