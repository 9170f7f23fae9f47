"""One attempt at a batch: decode it, call the handler once with all records, and return an outcome for each record.

A record that cannot be decoded fails alone. When the handler raises for a batch of several records, it is unknown which
record caused it. So each record is attempted alone, and only the record that caused the error fails.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from penstock.app.attempts.attempt import RECORDS, transactions_of
from penstock.app.attempts.called_handler import called_handler
from penstock.app.attempts.handler_failure import failure_maker
from penstock.app.attempts.handler_outputs import outcome_maker
from penstock.app.attempts.record_adapter import Arguments, RecordAdapter
from penstock.app.attempts.record_times import batch_in_time, batch_in_time_async
from penstock.app.attempts.task_cancellation import forget_cancellation, raise_if_ended
from penstock.app.attempts.time_limit import within_limit
from penstock.app.attempts.tracing import traced_batch, traced_batch_async
from penstock.app.handler import Handler
from penstock.app.offset_store import AlreadyFinished
from penstock.core.failures.later import Later
from penstock.core.failures.outcome import DONE, HELD, Outcome, Skip, Skipped
from penstock.core.text.plurals import counted
from penstock.errors import HandlerBug

_Indexes = Sequence[int]

BatchAttempt = Callable[[list[Any], list[int]], list[Outcome]]
AsyncBatchAttempt = Callable[[list[Any], list[int]], Awaitable[list[Outcome]]]


def batch_attempts(handler: Handler, adapter: RecordAdapter = RECORDS) -> BatchAttempt:
    """A function that attempts a batch and never raises. It takes the records and the attempt number of each."""
    handler = called_handler(handler)
    batch = _Batch(handler, adapter)
    call = _transactional_call(handler, adapter, batch) if handler.signature.takes_transaction else batch.call

    def attempt(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes, good, arguments = batch.decode(records, numbers)
        try:
            if good:
                call(outcomes, good, records, arguments)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            if batch.assign_error(error, good, outcomes):
                return outcomes
        else:
            return outcomes
        # Outside of the except block: inside, each error from here on would have the first one as its context.
        for index in good:
            (outcomes[index],) = attempt([records[index]], [numbers[index]])
        return outcomes

    return batch_in_time(handler, adapter, traced_batch(handler, adapter, attempt) if handler.tracing else attempt)


_Call = Callable[[list[Outcome], _Indexes, list[Any], list[Any]], None]


def _transactional_call(handler: Handler, adapter: RecordAdapter, batch: "_Batch") -> _Call:
    """Calls the handler in one transaction, which also marks the records of the batch that are done as finished."""
    begin, tx_index = transactions_of(handler, adapter), handler.signature.parts.index("tx")

    def call(outcomes: list[Outcome], good: _Indexes, records: list[Any], arguments: list[Any]) -> None:
        settled = outcomes.copy()
        with begin() as (arguments[tx_index], finish):
            batch.call(settled, good, records, arguments)
            finish([records[index] for index in good if settled[index] is DONE])
        outcomes[:] = settled

    return call


def batch_attempts_async(handler: Handler, adapter: RecordAdapter = RECORDS) -> AsyncBatchAttempt:
    """Like ``batch_attempts`` for an ``async def`` handler."""
    handler = called_handler(handler)
    batch, function = _Batch(handler, adapter), within_limit(handler, adapter)

    async def attempt(records: list[Any], numbers: list[int]) -> list[Outcome]:
        if batch.may_block(records):
            # On another thread, so that the event loop continues with other records while the codec asks the registry.
            # The codec caches the answer, so decoding below does not block.
            await adapter.run_blocking(batch.decode, records, numbers)
        outcomes, good, arguments = batch.decode(records, numbers)
        try:
            results = await function(*arguments) if good else None
            batch.settle(outcomes, good, records, results)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            raise_if_ended(error)
            if batch.assign_error(error, good, outcomes):
                return outcomes
        else:
            return outcomes
        await forget_cancellation()
        for index in good:
            (outcomes[index],) = await attempt([records[index]], [numbers[index]])
        return outcomes

    traced = traced_batch_async(handler, adapter, attempt) if handler.tracing else attempt
    return batch_in_time_async(handler, adapter, traced)


class _Batch:
    """The steps that ``def`` and ``async def`` handlers share."""

    def __init__(self, handler: Handler, adapter: RecordAdapter) -> None:
        self._returned = HELD if handler.commit == "manual" else DONE
        self._arguments = Arguments(handler, adapter)
        self._to_outcome = outcome_maker(handler, adapter)
        self._function = within_limit(handler, adapter)
        self._fail = failure_maker(handler, adapter)
        self._once = handler.is_at_most_once

    def call(self, outcomes: list[Outcome], good: _Indexes, records: list[Any], arguments: list[Any]) -> None:
        self.settle(outcomes, good, records, self._function(*arguments))

    def outcome_of(self, error: BaseException) -> Outcome:
        if isinstance(error, AlreadyFinished):
            return DONE
        return Skipped(str(error)) if isinstance(error, Skip) else self._fail(error)

    def assign_error(self, error: BaseException, good: _Indexes, outcomes: list[Outcome]) -> bool:
        """Make the error the outcome of all records, if it says nothing about a single one or none may be repeated.

        Returns False if each record has to be attempted alone instead.
        """
        if len(good) > 1 and not self._once and not isinstance(error, Later):
            return False
        for index in good:
            outcomes[index] = self.outcome_of(error)
        return True

    def may_block(self, records: list[Any]) -> bool:
        """Whether decoding these records asks the schema registry."""
        return self._arguments.has_codecs and any(map(self._arguments.may_block, records))

    def decode(self, records: list[Any], numbers: list[int]) -> tuple[list[Outcome], _Indexes, list[list[Any]]]:
        """An outcome for each record (done until proven otherwise), the indexes to handle, and their arguments."""
        outcomes: list[Outcome] = [self._returned] * len(records)
        # A user's own decoder may raise anything; decoding one by one finds the record.
        with suppress(Exception):
            return outcomes, range(len(records)), self._arguments.of_batch(records, numbers)
        return outcomes, *self._decode_each(records, numbers, outcomes)

    def _decode_each(
        self, records: list[Any], numbers: list[int], outcomes: list[Outcome]
    ) -> tuple[_Indexes, list[list[Any]]]:
        good: list[int] = []
        arguments: list[list[Any]] = [[] for _ in self._arguments.parts]
        for index, record in enumerate(records):
            try:
                made = self._arguments.of(record, numbers[index])
            except Exception as error:  # noqa: BLE001 - a user's own decoder may raise anything
                outcomes[index] = self.outcome_of(error)
                continue
            good.append(index)
            for values, value in zip(arguments, made, strict=True):
                values.append(value)
        return good, arguments

    def settle(self, outcomes: list[Outcome], good: _Indexes, records: list[Any], results: Any) -> None:
        """Put the return value of the handler into the outcomes: None for "all done", or one result per record."""
        if results is None:
            return
        if not isinstance(results, Sequence) or isinstance(results, str | bytes) or len(results) != len(good):
            what = counted(len(results), "result") if isinstance(results, list | tuple) else type(results).__name__
            failure = self._fail(HandlerBug(f"the handler returned {what} for {counted(len(good), 'record')}"))
            for index in good:
                outcomes[index] = failure
            return
        for index, result in zip(good, results, strict=True):
            if isinstance(result, BaseException):
                outcomes[index] = self.outcome_of(result)
            elif result is not None:
                try:
                    outcomes[index] = self._to_outcome(records[index], result)
                except Exception as error:  # noqa: BLE001 - what cannot be encoded fails alone
                    outcomes[index] = self.outcome_of(error)
