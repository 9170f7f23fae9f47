"""What an attempt at a record can lead to.

A handler returns, or raises ``Skip``, ``Reject`` or anything else. An attempt turns that into an ``Outcome``, and
``decide`` turns a failed one into what happens next. Both engines call these, so they cannot disagree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.core.failures.retry import DEFAULT_RETRY, Retry, RetryPolicy, retry_for
from penstock.core.records.record import Header
from penstock.core.settings import redacted
from penstock.errors import HandlerBug

# Only ever longer: asked sooner, what is away is still away.
_AWAY_JITTER = 0.2


class Skip(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: this record is done and has no output."""


class Reject(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: this record can never succeed; dead-letter it at once, without retries."""


class Undecodable(Exception):  # noqa: N818 - an outcome of decoding, always turned into a dead letter
    """The record's bytes are not what the handler's type hint asks for; another attempt cannot help."""


class DependencyUnavailable(Exception):  # noqa: N818 - what holds up an attempt, not something that is wrong with it
    """Something that every attempt needs, such as a schema registry, cannot be reached; no record is to blame for it.

    ``seconds`` is how long it is useless to ask again.
    """

    def __init__(self, problem: str, seconds: float) -> None:
        super().__init__(problem)
        self.seconds = seconds


class WorkerDied(Exception):  # noqa: N818 - what became of a process, not something that it raised
    """The process that attempted the record died, and maybe because of it."""


_FINAL = (Reject, Undecodable)
# Errors of these modules go by their own names.
_UNNAMED = ("builtins", __name__, HandlerBug.__module__)


@dataclass(slots=True)
class ProducerRecord:
    """A record on its way to Kafka: an output, a dead letter, or one that waits in a retry topic.

    Like a Record, it is not frozen only because one is built for nearly every record that flows; so is ``Done``.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(slots=True)
class Done:
    """The handler returned; ``output`` is what it returned, encoded, or None."""

    output: ProducerRecord | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The handler raised Skip."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; ``final`` where no other attempt can help or is wanted.

    The error itself stays where it was raised: this travels between processes. So the Retry of its type is chosen there
    too, and comes along.

    ``headers`` are for what becomes of the record, in place of its own of the same names.

    ``halts`` is set where the app has to stop at this record, because no other record would fare better: a bug of the
    handler, or its own wish. It is ``final`` then.

    ``traceback`` is rendered where the error was raised, and bounded there; empty where it would only repeat the
    message.

    ``wait`` is given where the attempt could not be made, because something that it needs is away. It does not count as
    an attempt then: the record is tried again after so many seconds, as often as it takes.
    """

    error_type: str
    message: str
    final: bool = False
    retry: Retry = DEFAULT_RETRY
    wait: float | None = None
    headers: tuple[Header, ...] = ()
    traceback: str = field(default="", compare=False)
    halts: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """The handler returned, and the record is finished once it is acknowledged with ``record.ack()``."""


Outcome = Done | Skipped | Failed | Held

# Outcomes without details are one object each: one is made for nearly every record that flows.
DONE = Done()
HELD = Held()


def failed(
    error: BaseException, policy: RetryPolicy = DEFAULT_RETRY, *, message: str | None = None, traceback: str = ""
) -> Failed:
    """What an error means for its record; ``message`` where there is more to say than the error's own."""
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
    )


def _halts(error: BaseException, policy: RetryPolicy) -> bool:
    if isinstance(error, HandlerBug):
        return isinstance(policy, Retry) or HandlerBug not in policy
    return isinstance(error, KeyboardInterrupt)


def error_name(kind: type[BaseException]) -> str:
    """The name by which an error is known in dead letters and reports."""
    module = kind.__module__
    return kind.__name__ if module in _UNNAMED else f"{module}.{kind.__qualname__}"


def error_message(error: BaseException) -> str:
    # A user's exception may itself fail to print, and that must not cost the record its dead letter.
    try:
        return redacted(str(error))
    except Exception as unprintable:  # noqa: BLE001
        return f"(its message could not be printed: {type(unprintable).__name__})"


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Hold the record's lane for ``delay`` seconds, then attempt it again."""

    delay: float


@dataclass(frozen=True, slots=True)
class Postpone:
    """Write it to the retry topic of this many seconds; once the broker has it, the record holds nothing up here."""

    delay: float


@dataclass(frozen=True, slots=True)
class ToDeadLetter:
    """Write it to the dead-letter topic; once the broker has it, the record is finished."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop the app loudly and commit nothing past this record: it has nowhere to go, or the handler itself is wrong."""


def decide(
    failure: Failed,
    *,
    attempt: int,
    has_dead_letter: bool,
    random: Callable[[], float],
    retry_topics: Sequence[float] = (),
) -> TryAgain | Postpone | ToDeadLetter | Halt:
    """What follows from a failed ``attempt`` (the first is 1).

    ``retry_topics`` are the seconds of each, ascending. A wait that reaches the shortest is spent in the longest that
    is not above it. Its jitter plays no part in that, or it would decide whether a lane is held.

    Where something is away, every record would go the same way; so none goes anywhere, and each holds its lane.
    """
    if failure.halts:
        return Halt()
    if failure.wait is not None:
        return TryAgain(failure.wait * (1 + _AWAY_JITTER * random()))
    wait = None if failure.final else failure.retry.wait_after(attempt)
    if wait is None:
        return ToDeadLetter() if has_dead_letter else Halt()
    fitting = [seconds for seconds in retry_topics if seconds <= wait]
    if fitting:
        return Postpone(fitting[-1])
    return TryAgain(failure.retry.jittered(wait, random()))
