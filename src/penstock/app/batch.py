"""One attempt at a batch: decode, call the handler once with all of it, and still one outcome for each record.

A record that cannot be decoded fails alone. Where the handler raises for a batch of several, nobody knows which record
it was; so each is attempted alone, and the one that is to blame fails alone.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from penstock.app.attempt import HANDLED, RECORDS, Reading, finisher, raise_if_cancelled
from penstock.app.handler import Handler
from penstock.core.outcome import DONE, HELD, Failed, Outcome, Skip, Skipped, failed
from penstock.serde import decoder_for

BatchAttempt = Callable[[list[Any], list[int]], list[Outcome]]
AsyncBatchAttempt = Callable[[list[Any], list[int]], Awaitable[list[Outcome]]]


def batch_attempts(handler: Handler, reading: Reading = RECORDS) -> BatchAttempt:
    """A function that attempts a batch and never raises; it takes the records and which attempt each is at."""
    batch = _Batch(handler, reading)

    def attempt(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes, good, values = batch.decode(records)
        try:
            results = handler.function(*batch.arguments(good, values, records, numbers)) if good else None
            batch.settle(outcomes, good, records, results)
        except HANDLED as error:
            if len(good) == 1:
                outcomes[good[0]] = batch.outcome_of(error)
            else:
                for index in good:
                    (outcomes[index],) = attempt([records[index]], [numbers[index]])
        return outcomes

    return attempt


def batch_attempts_async(handler: Handler, reading: Reading = RECORDS) -> AsyncBatchAttempt:
    """The same for an ``async def`` handler."""
    batch = _Batch(handler, reading)

    async def attempt(records: list[Any], numbers: list[int]) -> list[Outcome]:
        outcomes, good, values = batch.decode(records)
        try:
            results = await handler.function(*batch.arguments(good, values, records, numbers)) if good else None
            batch.settle(outcomes, good, records, results)
        except HANDLED as error:
            raise_if_cancelled(error)
            if len(good) == 1:
                outcomes[good[0]] = batch.outcome_of(error)
            else:
                for index in good:
                    (outcomes[index],) = await attempt([records[index]], [numbers[index]])
        return outcomes

    return attempt


_Indexes = Sequence[int]


class _Batch:
    """The steps of an attempt that do not depend on how the handler is called."""

    def __init__(self, handler: Handler, reading: Reading) -> None:
        self._signature = handler.signature
        self._returned = HELD if handler.commit == "manual" else DONE
        self._reading = reading
        self._decode = decoder_for(handler.signature.hint) if handler.signature.takes_value else None
        self._to_outcome = finisher(handler, reading)
        self._retry = handler.retry

    def outcome_of(self, error: BaseException) -> Outcome:
        return Skipped(str(error)) if isinstance(error, Skip) else failed(error, self._retry)

    def decode(self, records: list[Any]) -> tuple[list[Outcome], _Indexes, list[Any]]:
        """An outcome for each, done until shown otherwise; which of them can be handled; and the values of those."""
        outcomes: list[Outcome] = [self._returned] * len(records)
        everything = range(len(records))
        if self._decode is None:
            return outcomes, everything, []
        try:
            return outcomes, everything, list(map(self._decode, map(self._reading.value_of, records)))
        except Exception:  # noqa: BLE001 - a user's own decoder may raise anything; which record it was shows one by one
            return outcomes, *self._decode_each(records, outcomes)

    def _decode_each(self, records: list[Any], outcomes: list[Outcome]) -> tuple[_Indexes, list[Any]]:
        good, values = [], []
        for index, record in enumerate(records):
            try:
                values.append(self._decode(self._reading.value_of(record)))  # type: ignore[misc] # it is there
                good.append(index)
            except Exception as error:  # noqa: BLE001 - as above
                outcomes[index] = failed(error, self._retry)
        return good, values

    def arguments(self, good: _Indexes, values: list[Any], records: list[Any], numbers: list[int]) -> list[list[Any]]:
        arguments = [values] if self._signature.takes_value else []
        if self._signature.takes_record:
            wanted = range(len(records)) == good
            chosen = (records, numbers) if wanted else ([records[i] for i in good], [numbers[i] for i in good])
            arguments.append(list(map(self._reading.to_record, *chosen)))
        return arguments

    def settle(self, outcomes: list[Outcome], good: _Indexes, records: list[Any], results: Any) -> None:
        """Put what the handler returned into the outcomes: nothing for "all done", or one result for each record."""
        if results is None:
            return
        if not isinstance(results, Sequence) or isinstance(results, str | bytes) or len(results) != len(good):
            what = f"{len(results)} results" if isinstance(results, list | tuple) else type(results).__name__
            failure = Failed("Reject", f"the handler returned {what} for {len(good)} records", final=True)
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
                    outcomes[index] = failed(error, self._retry)
