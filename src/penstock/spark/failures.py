"""Spark's errors, translated once into what a user can act on.

Spark wraps an error in layers of its own and hands over a stack trace of hundreds of lines. What went wrong is
recognised by the words of the innermost one; the whole trace is in the log.
"""

import re

from penstock.app import Handler
from penstock.errors import ConfigError, HandlerError, PenstockError, ServerError, SetupError, TopicError
from penstock.spark.places import log_file
from penstock.spark.task import HaltedTaskError

_Row = tuple[str, type[PenstockError], str, str]

# Words to look for: the kind of error, what happened, what to do. A group in the words is `{0}` in the sentences.
_OF_QUERIES: tuple[_Row, ...] = (
    (
        r"RecordTooLargeException",
        HandlerError,
        "Handler {handler} made an output or dead letter that is larger than Kafka takes.",
        "Raise max.message.bytes of the topic and message.max.bytes in settings, or return less.",
    ),
    (
        r"Expiring \d+ record\(s\) for (\S+)-\d+:",
        TopicError,
        "Kafka did not take records for topic {0!r} of handler {handler} in time.",
        "See that the topic exists and that its brokers are up.",
    ),
    (
        r"Topic (\S+) not present in metadata",
        TopicError,
        "Topic {0!r} of handler {handler} does not exist.",
        "Create it, or check its name.",
    ),
    (
        r"Python worker exited unexpectedly",
        HandlerError,
        "A Python process died while it ran handler {handler}.",
        "A crash in a native library, too little memory and os._exit do that; the last words are in {log}.",
    ),
    (
        r"ModuleNotFoundError: No module named '([^']+)'",
        ConfigError,
        "Handler {handler} needs the module {0!r}, which Spark's Python workers do not find.",
        "Run penstock from the folder that holds it, or install it where the workers run.",
    ),
    (
        r"UnknownTopicOrPartitionException",
        TopicError,
        "A topic that handler {handler} reads ({topics}) is gone.",
        "Create it, or check its name, then start again.",
    ),
    (
        r"Some data may have been lost.*\s*Reason: ([^\n]+)",
        TopicError,
        "Records of {topics} were deleted before handler {handler} came to them: {0}",
        "Start again to go on with what is left.",
    ),
    (
        r"OutOfMemoryError",
        SetupError,
        "Spark ran out of memory in handler {handler}.",
        "Give it more in the environment: PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'.",
    ),
    (
        r"TimeoutException|DisconnectException|No resolvable bootstrap urls",
        ServerError,
        "No Kafka broker answers Spark for handler {handler}.",
        "See that the brokers are up and reachable; details are in {log}.",
    ),
)
_OF_SESSIONS: tuple[_Row, ...] = (
    (
        r"All masters are unresponsive|stopped SparkContext",
        ServerError,
        "No Spark master answers at {master!r}.",
        "See that it is running and reachable; details are in {log}.",
    ),
    (
        r"Connection refused|Connection reset|Broken pipe|Answer from Java side is empty|while sending or receiving",
        ServerError,
        "Spark on {master!r} is gone: its JVM ended.",
        "No answer from a cluster's master and too little memory do that; details are in {log}.",
    ),
)


def query_error(error: Exception, handler: Handler) -> PenstockError:
    """What ended a query, or a batch of it."""
    text = str(error)
    return HaltedTaskError.find(text) or _look_up(
        text,
        _OF_QUERIES,
        otherwise=f"Spark failed in handler {handler.name}: {_innermost(text)}",
        handler=handler.name,
        topics=", ".join(handler.topics),
    )


def session_error(error: Exception, master: str) -> PenstockError:
    """Why a session did not start, or went away."""
    text = str(error)
    return _look_up(
        text, _OF_SESSIONS, otherwise=f"Spark did not start on {master!r}: {_innermost(text)}", master=master
    )


def not_a_master(master: str) -> PenstockError:
    return ConfigError(
        f"{master!r} is not a Spark master.", hint="Use local[*], local[4], spark://HOST:PORT, k8s://URL or yarn."
    )


def _look_up(text: str, table: tuple[_Row, ...], *, otherwise: str, **words: str) -> PenstockError:
    for pattern, kind, problem, hint in table:
        found = re.search(pattern, text, re.DOTALL)
        if found:
            groups, log = found.groups(default=""), log_file()
            return kind(problem.format(*groups, log=log, **words), hint=hint.format(*groups, log=log, **words))
    return ServerError(otherwise, hint=f"The whole story is in {log_file()}.")


def _innermost(text: str) -> str:
    """The line that names the first cause: the last `Caused by` of Java, or the last line of a Python traceback."""
    causes = re.findall(r"^(?:Caused by: |: )([^\n]+)", text, re.MULTILINE)
    python = re.findall(r"^\w[\w.]*(?:Error|Exception|Interrupt): [^\n]*", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (causes or python or lines[:1] or ["no reason was given"])[-1]
