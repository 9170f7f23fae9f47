"""One attempt at one record: decode, call the handler, encode what it returns. Both engines attempt with this."""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.app.handler import Handler
from penstock.core.dead_letter import MAX_MESSAGE_BYTES, bounded
from penstock.core.outcome import DONE, Done, Failed, Outcome, Outgoing, Reject, Skip, Skipped, failed
from penstock.core.record import Record
from penstock.errors import HandlerError
from penstock.serde import decoder_for, encode

Attempt = Callable[[Record], Outcome]
AsyncAttempt = Callable[[Record], Awaitable[Outcome]]


def attempts(handler: Handler) -> Attempt:
    """A function that attempts a record with this handler and never raises."""
    call, to_outcome = _caller(handler), _finisher(handler)

    def attempt(record: Record) -> Outcome:
        try:
            result = call(record)
            return DONE if result is None else to_outcome(record, result)
        except Skip as skip:
            return Skipped(str(skip))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler does is an outcome
            return failed(error)

    return attempt


def attempts_async(handler: Handler) -> AsyncAttempt:
    """The same for an ``async def`` handler; only a cancellation gets out of it."""
    call, to_outcome = _caller(handler), _finisher(handler)

    async def attempt(record: Record) -> Outcome:
        try:
            result = await call(record)
            return DONE if result is None else to_outcome(record, result)
        except Skip as skip:
            return Skipped(str(skip))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler does is an outcome
            return failed(error)

    return attempt


def halt_error(handler_name: str, record: Record, failure: Failed) -> HandlerError:
    """The error that stops an app at a record that failed for good and has no dead-letter topic to go to."""
    return HandlerError(
        f"Handler {handler_name} failed on {record}, attempt {record.attempt}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint="Nothing past it was committed. Mend the handler, or set such records aside with dead_letter=...",
    )


def _caller(handler: Handler) -> Callable[[Record], Any]:
    function, signature = handler.function, handler.signature
    if not signature.takes_value:
        return function
    decode = decoder_for(signature.hint)
    if signature.takes_record:
        return lambda record: function(decode(record.value), record)
    return lambda record: function(decode(record.value))


def _finisher(handler: Handler) -> Callable[[Record, Any], Outcome]:
    to = handler.to

    def to_outcome(record: Record, result: Any) -> Outcome:
        if to is None:
            raise Reject(f"the handler returned {type(result).__name__}, but no output topic is set with to=")
        try:
            value = encode(result)
        except Exception as error:
            raise Reject(f"what the handler returned cannot be encoded: {error}") from error
        return Done(Outgoing(to, record.key, value))

    return to_outcome
