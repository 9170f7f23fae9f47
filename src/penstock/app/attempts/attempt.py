"""One attempt at one record: decode it, call the handler, encode its return value. Both engines use this."""

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.app.attempts.called_handler import called_handler
from penstock.app.attempts.deduplication import SEEN_BEFORE, SeenBefore, deduped, deduped_async, rememberer
from penstock.app.attempts.handler_failure import failure_maker
from penstock.app.attempts.handler_outputs import outcome_maker
from penstock.app.attempts.record_adapter import Arguments, Begin, RecordAdapter
from penstock.app.attempts.record_times import in_time, in_time_async
from penstock.app.attempts.task_cancellation import raise_if_ended
from penstock.app.attempts.time_limit import within_limit
from penstock.app.attempts.traceback_text import described
from penstock.app.attempts.tracing import traced, traced_async
from penstock.app.handler import Handler
from penstock.app.offset_store import AlreadyFinished
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.dead_letter_headers import MAX_MESSAGE_BYTES, bounded
from penstock.core.failures.outcome import (
    DONE,
    HELD,
    Failed,
    Outcome,
    Skip,
    Skipped,
    Unrouted,
    error_name,
)
from penstock.core.records.record import Record
from penstock.errors import ConfigError, HandlerBug, HandlerError

Attempt = Callable[[Any, int], Outcome]
AsyncAttempt = Callable[[Any, int], Awaitable[Outcome]]


RECORDS = RecordAdapter()


def attempts(handler: Handler, adapter: RecordAdapter = RECORDS) -> Attempt:
    """A function that attempts a record with this handler and returns an outcome; it never raises."""
    handler = called_handler(handler)
    if handler.signature.takes_transaction:
        return attempts_in_transactions(handler, adapter)
    function, arguments = within_limit(handler, adapter), Arguments(handler, adapter)
    takes_record = handler.signature.takes_record
    source_of, decode, arguments_of = arguments.source_of, arguments.decode, arguments.of
    to_record, to_outcome, only_record = adapter.to_record, outcome_maker(handler, adapter), arguments.only_record
    returned, fail = HELD if handler.commit == "manual" else DONE, failure_maker(handler, adapter)

    # Inlined, here and in attempts_async: this runs for every record, and each further call costs measurable time.
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

    once = deduped(handler, adapter, traced(handler, adapter, attempt) if handler.tracing else attempt)
    return in_time(handler, adapter, once)


def attempts_async(handler: Handler, adapter: RecordAdapter = RECORDS) -> AsyncAttempt:
    """Like ``attempts`` for an ``async def`` handler. It raises only when Penstock cancels its task."""
    handler = called_handler(handler)
    function, arguments = within_limit(handler, adapter), Arguments(handler, adapter)
    takes_record = handler.signature.takes_record
    source_of, decode, arguments_of = arguments.source_of, arguments.decode, arguments.of
    to_record, to_outcome, only_record = adapter.to_record, outcome_maker(handler, adapter), arguments.only_record
    returned, fail = HELD if handler.commit == "manual" else DONE, failure_maker(handler, adapter)
    may_block, run_blocking = arguments.may_block if arguments.has_codecs else None, adapter.run_blocking

    async def attempt(record: Any, number: int) -> Outcome:
        try:
            if may_block is not None and may_block(record):
                # On another thread, so that the event loop continues with other records while the codec asks the
                # registry. The codec caches the answer, so decoding below does not block.
                await run_blocking(arguments_of, record, number)
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

    once = deduped_async(handler, adapter, traced_async(handler, adapter, attempt) if handler.tracing else attempt)
    return in_time_async(handler, adapter, once)


def attempts_in_transactions(handler: Handler, adapter: RecordAdapter) -> Attempt:
    """Like ``attempts`` for a handler that takes ``tx``: the transaction also marks the record as finished."""
    function, arguments = within_limit(handler, adapter), Arguments(handler, adapter)
    fail, remember = failure_maker(handler, adapter), rememberer(handler, adapter)
    begin, tx_index, to_outcome = (
        transactions_of(handler, adapter),
        arguments.parts.index("tx"),
        outcome_maker(handler, adapter),
    )

    def attempt(record: Any, number: int) -> Outcome:
        try:
            values = arguments.of(record, number)
            with begin() as (values[tx_index], finish):
                if remember is not None:
                    remember(values[tx_index], record)
                result = function(*values)
                outcome = DONE if result is None else to_outcome(record, result)
                finish([record])
        except AlreadyFinished:
            return DONE
        except SeenBefore:
            return SEEN_BEFORE
        except Skip as skip:
            return Skipped(str(skip))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return fail(error)
        return outcome

    return in_time(handler, adapter, traced(handler, adapter, attempt) if handler.tracing else attempt)


def transactions_of(handler: Handler, adapter: RecordAdapter) -> Begin:
    if adapter.begin is None:
        raise ConfigError(
            f"Handler {handler.name} takes tx, but this engine opens no transactions.",
            hint='Run it on the local engine with offsets="postgresql://..." or "sqlite:///...".',
        )
    return adapter.begin


def stop_error(handler: Handler, record: Record, failure: Failed, circuit: Circuit | None) -> HandlerError:
    """The error that stops the app at this record: the breaker has opened, or the record cannot be dead-lettered."""
    if circuit is not None and circuit.is_open and not circuit.pauses:
        return breaker_error(handler, record, failure, circuit)
    return halt_error(handler.name, record, failure, is_committed=handler.is_at_most_once)


def halt_error(handler_name: str, record: Record, failure: Failed, *, is_committed: bool = False) -> HandlerError:
    """The error that stops the app at a record that failed for good: it has no dead-letter topic, or shows a bug."""
    return HandlerError(
        f"Handler {failure.handler or handler_name} failed on {record}, attempt {record.attempt}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint=f"{_past(is_committed=is_committed)} {_advice(failure)}",
        traceback=failure.traceback,
    )


def _past(*, is_committed: bool) -> str:
    if is_committed:
        return "It was committed before it was handled, so it is not redelivered."
    return "Neither it nor any later record of its partition was committed."


def _advice(failure: Failed) -> str:
    if not failure.halts:
        return "Fix the handler, or send such records to a topic with dead_letter=..."
    if failure.error_type == HandlerBug.__name__:
        return "Fix the handler; or list HandlerBug in retry={...} to treat it like other errors."
    if failure.error_type == Unrouted.__name__:
        return 'Add a handler without when=, which takes the rest; or set otherwise="dead_letter" or "skip".'
    return f"A handler that raises {failure.error_type} stops the app; raise Reject to send its record to dead_letter."


def worker_error(handler: Handler, error: BaseException) -> HandlerError:
    """The error that stops the app when a worker failed outside of an attempt, so that no record is to blame."""
    message, traceback = described(error)
    past = (
        "Its records were committed before they were handled, so they are not redelivered."
        if handler.is_at_most_once
        else "Its records were not committed and are redelivered."
    )
    return HandlerError(
        f"A worker of handler {handler.name} failed: {error_name(type(error))}: {message}.",
        hint=f"{past} This is a bug in Penstock: please report it.",
        traceback=traceback,
    )


def breaker_error(handler: Handler, record: Record, failure: Failed, circuit: Circuit) -> HandlerError:
    """The error that stops the app when its breaker opens: nearly all records became dead letters."""
    return HandlerError(
        f"Handler {handler.name} sent {circuit} to the dead letters, so it stopped before the next one, {record}: "
        f"{failure.error_type}: {bounded(failure.message, MAX_MESSAGE_BYTES)}.",
        hint=f"{_past(is_committed=handler.is_at_most_once)} Fix what these records have in common and start again, or "
        "change breaker=...",
        traceback=failure.traceback,
    )
