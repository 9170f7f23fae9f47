"""One attempt at one record: decode, call the handler, encode what it returns. Both engines attempt with this."""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.app.handler import Handler
from penstock.app.handler_failure import failing
from penstock.app.offset_store import AlreadyFinished
from penstock.app.record_adapter import Arguments, Begin, RecordAdapter, encoder_of, output_codec
from penstock.app.task_cancellation import raise_if_ended
from penstock.app.traceback_text import described
from penstock.app.tracing import traced, traced_async
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.dead_letter_headers import MAX_MESSAGE_BYTES, bounded
from penstock.core.failures.outcome import (
    DONE,
    HELD,
    DependencyUnavailable,
    Done,
    Failed,
    Outcome,
    ProducerRecord,
    Skip,
    Skipped,
    error_name,
)
from penstock.core.records.record import Record
from penstock.errors import ConfigError, HandlerBug, HandlerError

Attempt = Callable[[Any, int], Outcome]
AsyncAttempt = Callable[[Any, int], Awaitable[Outcome]]


RECORDS = RecordAdapter()


def attempts(handler: Handler, adapter: RecordAdapter = RECORDS) -> Attempt:
    """A function that attempts a record with this handler and never raises."""
    if handler.signature.takes_transaction:
        return attempts_in_transactions(handler, adapter)
    function, arguments, takes_record = handler.function, Arguments(handler, adapter), handler.signature.takes_record
    source_of, decode, arguments_of = arguments.source_of, arguments.decode, arguments.of
    to_record, to_outcome, only_record = adapter.to_record, finisher(handler, adapter), arguments.only_record
    returned, fail = HELD if handler.commit == "manual" else DONE, failing(handler, adapter)

    # Written out, as in the async one below: this runs for every record, and each call inside of it is felt.
    def attempt(record: Any, number: int) -> Outcome:
        try:
            if decode is None:
                result = function(to_record(record, number)) if only_record else function(*arguments_of(record, number))
            elif takes_record:
                value = decode(record) if source_of is None else decode(source_of(record))
                result = function(value, to_record(record, number))
            else:
                result = function(decode(record) if source_of is None else decode(source_of(record)))
            return returned if result is None else to_outcome(record, result)
        except Skip as skip:
            return Skipped(str(skip))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return fail(error)

    return traced(handler, adapter, attempt) if handler.tracing else attempt


def attempts_async(handler: Handler, adapter: RecordAdapter = RECORDS) -> AsyncAttempt:
    """The same for an ``async def`` handler; only its own cancellation gets out of it."""
    function, arguments, takes_record = handler.function, Arguments(handler, adapter), handler.signature.takes_record
    source_of, decode, arguments_of = arguments.source_of, arguments.decode, arguments.of
    to_record, to_outcome, only_record = adapter.to_record, finisher(handler, adapter), arguments.only_record
    returned, fail = HELD if handler.commit == "manual" else DONE, failing(handler, adapter)
    waits, aside = arguments.waits if arguments.may_wait else None, adapter.aside

    async def attempt(record: Any, number: int) -> Outcome:
        try:
            if waits is not None and waits(record):
                # What it has to ask for is remembered then. The loop goes on with other records meanwhile.
                await aside(arguments_of, record, number)
            if decode is None:
                result = await function(*([to_record(record, number)] if only_record else arguments_of(record, number)))
            elif takes_record:
                value = decode(record) if source_of is None else decode(source_of(record))
                result = await function(value, to_record(record, number))
            else:
                result = await function(decode(record) if source_of is None else decode(source_of(record)))
            return returned if result is None else to_outcome(record, result)
        except Skip as skip:
            return Skipped(str(skip))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            raise_if_ended(error)
            return fail(error)

    return traced_async(handler, adapter, attempt) if handler.tracing else attempt


def attempts_in_transactions(handler: Handler, adapter: RecordAdapter) -> Attempt:
    """The same where the handler writes in a transaction, which its record is finished by."""
    function, arguments, fail = handler.function, Arguments(handler, adapter), failing(handler, adapter)
    begin, at, to_outcome = beginning(handler, adapter), arguments.parts.index("tx"), finisher(handler, adapter)

    def attempt(record: Any, number: int) -> Outcome:
        try:
            made = arguments.of(record, number)
            with begin() as (made[at], finish):
                result = function(*made)
                outcome = DONE if result is None else to_outcome(record, result)
                finish([record])
        except AlreadyFinished:
            return DONE
        except Skip as skip:
            return Skipped(str(skip))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return fail(error)
        return outcome

    return traced(handler, adapter, attempt) if handler.tracing else attempt


def beginning(handler: Handler, adapter: RecordAdapter) -> Begin:
    if adapter.begin is None:
        raise ConfigError(
            f"Handler {handler.name} takes tx, and nothing here gives it a transaction.",
            hint='Run it on the local engine with offsets="postgresql://..." or "sqlite:///...".',
        )
    return adapter.begin


def halt_error(handler_name: str, record: Record, failure: Failed, *, is_committed: bool = False) -> HandlerError:
    """The error that stops an app at a record that failed for good, and that has nowhere to go or shows a bug."""
    past = (
        "It will not come again, as it was committed before it was handled"
        if is_committed
        else "Nothing past it was committed"
    )
    return HandlerError(
        f"Handler {handler_name} failed on {record}, attempt {record.attempt}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint=f"{past}. {_advice(failure)}",
        traceback=failure.traceback,
    )


def _advice(failure: Failed) -> str:
    if not failure.halts:
        return "Fix the handler, or set such records aside with dead_letter=..."
    if failure.error_type == HandlerBug.__name__:
        return "Correct the handler; or list HandlerBug in retry={...}, and it is treated like other errors."
    return f"A handler that raises {failure.error_type} stops the app; to set its record aside, raise Reject instead."


def worker_error(handler_name: str, error: BaseException) -> HandlerError:
    """The error that stops an app where a worker failed outside of every attempt, so that no record stands for it."""
    message, traceback = described(error)
    return HandlerError(
        f"A worker of handler {handler_name} broke down: {error_name(type(error))}: {message}.",
        hint="Its records were not committed and will come again. No handler causes this: please report it.",
        traceback=traceback,
    )


def breaker_error(handler_name: str, record: Record, failure: Failed, circuit: Circuit) -> HandlerError:
    """The error that stops an app whose records nearly all go to the dead letters."""
    return HandlerError(
        f"Handler {handler_name} sent {circuit} to the dead letters, so it stopped before doing so with {record}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint="Nothing past it was committed. Mend what they have in common, then start again; or change breaker=...",
        traceback=failure.traceback,
    )


def finisher(handler: Handler, adapter: RecordAdapter) -> Callable[[Any, Any], Outcome]:
    to, key_of, codec = handler.to, adapter.key_of, output_codec(handler, adapter)
    encode = encoder_of(handler)

    def to_outcome(record: Any, result: Any) -> Outcome:
        if to is None:
            raise HandlerBug(f"the handler returned {type(result).__name__}, but no output topic is set with to=")
        try:
            value, headers = (encode(result), ()) if codec is None else codec.encode(result)
        except DependencyUnavailable:
            raise
        except Exception as error:
            raise HandlerBug(f"what the handler returned cannot be encoded: {error}") from error
        return Done(ProducerRecord(to, key_of(record), value, headers))

    return to_outcome
