"""What an attempt at a record can lead to.

A handler returns, or raises ``Skip``, ``Reject`` or anything else. An attempt turns that into an ``Outcome``, and
``decide`` turns a failed one into what happens next. Both engines call these, so they cannot disagree.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.record import Header
from penstock.core.retry import Retry


class Skip(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: this record is done and has no output."""


class Reject(Exception):  # noqa: N818 - an outcome that a handler chooses, not an error
    """Raise it in a handler: this record can never succeed; dead-letter it at once, without retries."""


class Undecodable(Exception):  # noqa: N818 - an outcome of decoding, always turned into a dead letter
    """The record's bytes are not what the handler's type hint asks for; another attempt cannot help."""


@dataclass(slots=True)
class Outgoing:
    """A record on its way to Kafka: an output or a dead letter.

    Like a Record, it is not frozen only because one is built for nearly every record that flows; so is ``Done``.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(slots=True)
class Done:
    """The handler returned; ``output`` is what it returned, encoded, or None."""

    output: Outgoing | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The handler raised Skip."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; ``final`` where no other attempt can help."""

    error_type: str
    message: str
    final: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """The handler returned, and the record is finished once it is acknowledged with ``record.ack()``."""


Outcome = Done | Skipped | Failed | Held

# Outcomes without details are one object each: one is made for nearly every record that flows.
DONE = Done()
HELD = Held()


def failed(error: BaseException) -> Failed:
    kind = type(error)
    final = isinstance(error, Reject | Undecodable)
    name = kind.__name__ if kind.__module__ in ("builtins", __name__) else f"{kind.__module__}.{kind.__qualname__}"
    return Failed(name, _message(error), final=final)


def _message(error: BaseException) -> str:
    # A user's exception may itself fail to print, and that must not cost the record its dead letter.
    try:
        return str(error)
    except Exception as unprintable:  # noqa: BLE001
        return f"(its message could not be printed: {type(unprintable).__name__})"


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Hold the record's lane for ``delay`` seconds, then attempt it again."""

    delay: float


@dataclass(frozen=True, slots=True)
class ToDeadLetter:
    """Write it to the dead-letter topic; once the broker has it, the record is finished."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop the app loudly and commit nothing past this record: it failed and has nowhere to go."""


def decide(
    failure: Failed, *, attempt: int, retry: Retry, has_dead_letter: bool, random: Callable[[], float]
) -> TryAgain | ToDeadLetter | Halt:
    """What follows from a failed ``attempt`` (the first is 1)."""
    if not failure.final:
        delay = retry.delay_after(attempt, random())
        if delay is not None:
            return TryAgain(delay)
    return ToDeadLetter() if has_dead_letter else Halt()
