"""One attempt at one record: decode, call the handler, encode what it returns. Both engines attempt with this."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from penstock.app.handler import Handler
from penstock.core.breaker import Circuit
from penstock.core.dead_letter import MAX_MESSAGE_BYTES, bounded
from penstock.core.outcome import DONE, HELD, Done, Failed, Outcome, Outgoing, Reject, Skip, Skipped, failed
from penstock.core.record import Record
from penstock.errors import HandlerError
from penstock.serde import decoder_for, encode

# Whatever a handler raises is an outcome. What is not in here, such as an interruption, stops the app.
HANDLED = (Exception, SystemExit, asyncio.CancelledError)

Attempt = Callable[[Any, int], Outcome]
AsyncAttempt = Callable[[Any, int], Awaitable[Outcome]]


@dataclass(frozen=True)
class Reading:
    """How an engine's records are read. By default they are Records, and know their attempt themselves."""

    to_record: Callable[[Any, int], Record] = lambda record, _attempt: record
    value_of: Callable[[Any], bytes | None] = attrgetter("value")
    offset_of: Callable[[Any], int] = attrgetter("offset")
    key_of: Callable[[Any], bytes | None] = attrgetter("key")


RECORDS = Reading()


def attempts(handler: Handler, reading: Reading = RECORDS) -> Attempt:
    """A function that attempts a record with this handler and never raises."""
    function, decode, takes_record = handler.function, _decoder(handler), handler.signature.takes_record
    value_of, to_record, to_outcome = reading.value_of, reading.to_record, finisher(handler, reading)
    returned, retry = HELD if handler.commit == "manual" else DONE, handler.retry

    # Written out, as in the async one below: this runs for every record, and each call inside of it is felt.
    def attempt(record: Any, number: int) -> Outcome:
        try:
            if decode is None:
                result = function(to_record(record, number))
            elif takes_record:
                result = function(decode(value_of(record)), to_record(record, number))
            else:
                result = function(decode(value_of(record)))
            return returned if result is None else to_outcome(record, result)
        except Skip as skip:
            return Skipped(str(skip))
        except HANDLED as error:
            return failed(error, retry)

    return attempt


def attempts_async(handler: Handler, reading: Reading = RECORDS) -> AsyncAttempt:
    """The same for an ``async def`` handler; only its own cancellation gets out of it."""
    function, decode, takes_record = handler.function, _decoder(handler), handler.signature.takes_record
    value_of, to_record, to_outcome = reading.value_of, reading.to_record, finisher(handler, reading)
    returned, retry = HELD if handler.commit == "manual" else DONE, handler.retry

    async def attempt(record: Any, number: int) -> Outcome:
        try:
            if decode is None:
                result = await function(to_record(record, number))
            elif takes_record:
                result = await function(decode(value_of(record)), to_record(record, number))
            else:
                result = await function(decode(value_of(record)))
            return returned if result is None else to_outcome(record, result)
        except Skip as skip:
            return Skipped(str(skip))
        except HANDLED as error:
            raise_if_cancelled(error)
            return failed(error, retry)

    return attempt


def raise_if_cancelled(error: BaseException) -> None:
    """A cancellation of the attempt itself goes on; one of something that the handler awaited is a failure of it."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def halt_error(handler_name: str, record: Record, failure: Failed) -> HandlerError:
    """The error that stops an app at a record that failed for good and has no dead-letter topic to go to."""
    return HandlerError(
        f"Handler {handler_name} failed on {record}, attempt {record.attempt}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint="Nothing past it was committed. Mend the handler, or set such records aside with dead_letter=...",
    )


def breaker_error(handler_name: str, record: Record, failure: Failed, circuit: Circuit) -> HandlerError:
    """The error that stops an app whose records nearly all go to the dead letters."""
    return HandlerError(
        f"Handler {handler_name} sent {circuit} to the dead letters, so it stopped before doing so with {record}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint="Nothing past it was committed. Mend what they have in common, then start again; or change breaker=...",
    )


def _decoder(handler: Handler) -> Callable[[bytes | None], Any] | None:
    """None where the handler takes only the record."""
    return decoder_for(handler.signature.hint) if handler.signature.takes_value else None


def finisher(handler: Handler, reading: Reading) -> Callable[[Any, Any], Outcome]:
    to, key_of = handler.to, reading.key_of

    def to_outcome(record: Any, result: Any) -> Outcome:
        if to is None:
            raise Reject(f"the handler returned {type(result).__name__}, but no output topic is set with to=")
        try:
            value = encode(result)
        except Exception as error:
            raise Reject(f"what the handler returned cannot be encoded: {error}") from error
        return Done(Outgoing(to, key_of(record), value))

    return to_outcome
