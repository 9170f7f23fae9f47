"""The outcome of one attempt at a record, and what follows from it.

A handler returns, or it raises ``Skip``, ``Reject``, ``Later`` or any other exception. The attempt turns that into an
``Outcome``. ``decide`` says what happens after a failed one, ``decide_delay`` after ``Later``. Both engines use these
functions, so they always agree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.core.failures.breaker import Breaker
from penstock.core.failures.retry import DEFAULT_RETRY, Retry, RetryPolicy, retry_for
from penstock.core.records.record import Header
from penstock.core.settings import redacted
from penstock.errors import HandlerBug

# Jitter only lengthens this wait: before the wait is over, the dependency is still unavailable.
_UNAVAILABLE_JITTER = 0.2


class Skip(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: the record is finished and has no output."""


class Reject(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: the record can never succeed, so it is dead-lettered at once, without retries."""


class Undecodable(Exception):  # noqa: N818 - an outcome of decoding, always turned into a dead letter
    """The record's bytes do not match the handler's type hint; another attempt cannot help."""


class DependencyUnavailable(Exception):  # noqa: N818 - the reason why an attempt waits, not an error of the record
    """A service that every attempt needs, such as a schema registry, cannot be reached. The record is not the cause.

    ``seconds`` is how long to wait before the next attempt.
    """

    def __init__(self, problem: str, seconds: float) -> None:
        super().__init__(problem)
        self.seconds = seconds


class Unrouted(Exception):  # noqa: N818 - an outcome of routing, never raised by a handler
    """No handler takes the record: the condition of none of them holds."""


class WorkerDied(Exception):  # noqa: N818 - the end of a process, not an error that it raised
    """The worker process that attempted the record died, possibly because of the record."""


_FINAL = (Reject, Undecodable, Unrouted)
_OF_THE_RECORD = frozenset(each.__name__ for each in _FINAL)
# Errors of these modules are shown without the name of their module.
_MODULES_NOT_SHOWN = ("builtins", __name__, HandlerBug.__module__)


@dataclass(slots=True)
class ProducerRecord:
    """A record that Penstock writes to Kafka: an output, a dead letter, or a record for a retry topic.

    ``partition`` -1 lets the client choose one by the key; ``timestamp_ms`` 0 is the time at which the client gets it.

    It is not frozen, for speed: one is built for nearly every record, and frozen dataclasses are slower to build. The
    same holds for ``Done``.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int = -1
    timestamp_ms: int = 0


@dataclass(slots=True)
class Done:
    """The handler returned; ``outputs`` are what it returned or yielded, encoded.

    ``handler``, here and in the other outcomes, is the route that handled the record; empty if there is only one
    handler. Outcomes that differ only in it are equal.
    """

    outputs: tuple[ProducerRecord, ...] = ()
    handler: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """The handler raised Skip."""

    reason: str = ""
    handler: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Expired(Skipped):
    """The record is finished without a call of the handler: a header says that its time is over."""


@dataclass(frozen=True, slots=True)
class Duplicate(Skipped):
    """The record is finished without a call of the handler: with ``dedupe=``, its id was handled before."""


WITHOUT_CALL = (Expired, Duplicate)
"""The outcomes of records that are finished without a call of the handler."""


class Unfinished:
    """Base of the outcomes that do not finish the record: its lane waits until it is decided what follows."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Failed(Unfinished):
    """The attempt failed. ``final`` means that no further attempt is made.

    Instances travel between processes and exceptions do not, so this carries the error's name and message, and the
    ``retry`` that the process which raised the error has chosen by the error's type.

    ``headers`` are added to the dead letter or retry record and replace the record's headers of the same names.

    ``halts`` means that the app must stop at this record, because other records would fail in the same way: the handler
    has a bug, or it raised KeyboardInterrupt. ``final`` is then True.

    ``trips`` means that the handler's breaker counts the failure, by the type of the error.

    ``traceback`` is rendered and shortened in the process that raised the error; empty if it would only repeat the
    message.

    ``wait`` is set if the attempt could not be made because a dependency is unavailable. This does not count as an
    attempt: the record is tried again after ``wait`` seconds, without a limit.
    """

    error_type: str
    message: str
    final: bool = False
    retry: Retry = DEFAULT_RETRY
    wait: float | None = None
    headers: tuple[Header, ...] = ()
    traceback: str = field(default="", compare=False)
    halts: bool = False
    trips: bool = True
    handler: str = field(default="", compare=False)

    @property
    def is_of_the_call(self) -> bool:
        """Whether what the handler calls may be the reason: not the record itself, and the handler was called."""
        return self.wait is None and not self.halts and self.error_type not in _OF_THE_RECORD


@dataclass(frozen=True, slots=True)
class Delayed(Unfinished):
    """The handler raised Later, or was not called because a header of the record names a later time.

    This does not count as an attempt. ``until`` is in seconds since 1970, and ``seconds`` is the wait until then.
    ``headers`` are added to the retry record, as those of ``Failed``.
    """

    seconds: float
    until: float
    reason: str = ""
    headers: tuple[Header, ...] = ()
    handler: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Held:
    """The handler returned, and the record is finished once the user calls ``record.ack()``."""

    handler: str = field(default="", compare=False)


Outcome = Done | Skipped | Failed | Held | Delayed

# Shared instances: nearly every record has one of these outcomes.
DONE = Done()
HELD = Held()


def failed(
    error: BaseException,
    policy: RetryPolicy = DEFAULT_RETRY,
    *,
    message: str | None = None,
    traceback: str = "",
    breaker: Breaker | None = None,
) -> Failed:
    """The outcome for a record whose attempt raised ``error``; ``message`` overrides the error's own message."""
    kind = type(error)
    retry = retry_for(policy, kind)
    wait = error.seconds if isinstance(error, DependencyUnavailable) else None
    halts = _halts(error, policy)
    return Failed(
        error_name(kind),
        error_message(error) if message is None else message,
        final=wait is None and (halts or retry.attempts == 1 or isinstance(error, _FINAL)),
        retry=retry,
        wait=wait,
        traceback=traceback,
        halts=halts,
        trips=breaker is None or breaker.counts(error),
    )


def _halts(error: BaseException, policy: RetryPolicy) -> bool:
    if isinstance(error, HandlerBug):
        return isinstance(policy, Retry) or HandlerBug not in policy
    return isinstance(error, KeyboardInterrupt)


def error_name(kind: type[BaseException]) -> str:
    """The name of an error in dead letters and reports."""
    module = kind.__module__
    return kind.__name__ if module in _MODULES_NOT_SHOWN else f"{module}.{kind.__qualname__}"


def error_message(error: BaseException) -> str:
    # A user's exception may raise in __str__. The record still needs its dead letter.
    try:
        return redacted(str(error))
    except Exception as unprintable:  # noqa: BLE001
        return f"(its message could not be printed: {type(unprintable).__name__})"


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Block the record's lane for ``delay`` seconds, then attempt the record again."""

    delay: float


@dataclass(frozen=True, slots=True)
class Postpone:
    """Write the record to the retry topic of ``delay`` seconds; once the broker has it, its lane continues."""

    delay: float


@dataclass(frozen=True, slots=True)
class ToDeadLetter:
    """Write the record to the dead-letter topic; once the broker has it, the record is finished."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop the app with an error and commit nothing past this record: there is no dead-letter topic, or ``halts``."""


def decide(
    failure: Failed,
    *,
    attempt: int,
    has_dead_letter: bool,
    random: Callable[[], float],
    retry_topics: Sequence[float] = (),
) -> TryAgain | Postpone | ToDeadLetter | Halt:
    """What follows from a failed ``attempt`` (the first is 1).

    ``retry_topics`` are the waits of the retry topics in seconds, ascending. A record goes to the retry topic with the
    longest wait that is not above the wait of its Retry; if there is none, it blocks its lane. This compares the wait
    without jitter: otherwise chance would decide whether the lane is blocked.

    If a dependency is unavailable, every record would fail. So no record leaves its topic, and each blocks its lane.
    """
    if failure.halts:
        return Halt()
    if failure.wait is not None:
        return TryAgain(failure.wait * (1 + _UNAVAILABLE_JITTER * random()))
    wait = None if failure.final else failure.retry.wait_after(attempt)
    if wait is None:
        return ToDeadLetter() if has_dead_letter else Halt()
    delay = _longest_within(wait, retry_topics)
    return TryAgain(failure.retry.jittered(wait, random())) if delay is None else Postpone(delay)


def decide_delay(delayed: Delayed, *, retry_topics: Sequence[float] = ()) -> TryAgain | Postpone:
    """Where a delayed record waits: by the rule for retries, in a retry topic or in memory.

    A retry topic can be shorter than the wait. The record is then postponed again when it comes back, until its time.
    """
    delay = _longest_within(delayed.seconds, retry_topics)
    return TryAgain(delayed.seconds) if delay is None else Postpone(delay)


def _longest_within(wait: float, retry_topics: Sequence[float]) -> float | None:
    """The longest delay of a retry topic that is not above the wait."""
    return next((seconds for seconds in reversed(retry_topics) if seconds <= wait), None)
