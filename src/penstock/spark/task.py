"""What runs in Spark's Python workers: the handler on every record of a task.

A task is a stretch of one partition. Its records are attempted one after the other, in the order of their offsets; a
record that waits for its next attempt holds up the rest of its partition, and no other.
"""

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

import pyarrow as pa
from pyspark import cloudpickle

from penstock.app import Handler, attempts, attempts_async, batch_attempts, breaker_error, halt_error
from penstock.core.breaker import Circuit
from penstock.core.counts import Counts
from penstock.core.dead_letter import dead_letter
from penstock.core.outcome import Done, Failed, Held, Outcome, Skipped, ToDeadLetter, TryAgain, decide
from penstock.core.record import Record
from penstock.errors import ConfigError, HandlerError
from penstock.spark.columns import SinkColumns, to_records


class HaltedTaskError(Exception):
    """A HandlerError on its way to the driver.

    Of an error in a Python worker, Spark hands the driver only the printed traceback. So the sentences travel in its
    text, as JSON, which keeps them on one line and whole.
    """

    def __init__(self, error: HandlerError) -> None:
        super().__init__(f"{json.dumps([error.problem, error.hint])} :halted")

    @staticmethod
    def find(text: str) -> HandlerError | None:
        """The error that travelled in this text, if one did."""
        found = re.search(rf"{HaltedTaskError.__name__}: (\[.*\]) :halted", text)
        if found is None:
            return None
        problem, hint = json.loads(found[1])
        return HandlerError(problem, hint=hint)


def for_workers(handler: Handler) -> Handler:
    """The handler as it travels to the workers: without settings, which hold secrets and have no use there."""
    packed = replace(handler, settings={})
    try:
        cloudpickle.dumps(packed)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ConfigError(
            f"Handler {handler.name} cannot be sent to Spark's Python workers: {error}.",
            hint="Make what it holds (files, locks, connections) at module level, where each worker makes its own.",
        ) from error
    return packed


def handle_task(
    handler: Handler,
    batches: Iterable[pa.RecordBatch],
    *,
    count: Callable[[Counts], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """Rows for every output and dead letter of these batches; ``count`` hears how many records led to what."""
    handle = _handle_async(handler) if handler.signature.is_async else _handle(handler, sleep)
    circuit = None if handler.breaker is None else Circuit(handler.breaker)
    for batch in batches:
        settled = _Settled(handler, circuit)
        try:
            handle(to_records(batch), settled)
        except HandlerError as error:
            raise HaltedTaskError(error) from None
        count(settled.counts(read=len(batch)))
        if settled.outgoing:
            yield settled.outgoing.to_batch()


class _Settled:
    """What the records of one Arrow batch led to."""

    def __init__(self, handler: Handler, circuit: Circuit | None) -> None:
        self._handler = handler
        self._circuit = circuit
        self.outgoing = SinkColumns()
        self._dead_lettered = 0
        self._skipped = 0

    def settle(self, record: Record, outcome: Outcome) -> float | None:
        """Seconds until the next attempt, or None where the record is finished."""
        if self._circuit is not None and not isinstance(outcome, Failed):
            self._circuit.finished(1)
        if isinstance(outcome, Done):
            if outcome.output is not None:
                self.outgoing.add(outcome.output)
            return None
        if isinstance(outcome, Skipped):
            self._skipped += 1
            return None
        if isinstance(outcome, Held):  # commit="manual" is refused on Spark, whose batches commit as a whole
            return None
        dead_letter_topic = self._handler.dead_letter
        decision = decide(
            outcome,
            attempt=record.attempt,
            has_dead_letter=dead_letter_topic is not None,
            random=random.random,
        )
        if isinstance(decision, TryAgain):
            record.attempt += 1
            return decision.delay
        if isinstance(decision, ToDeadLetter) and dead_letter_topic is not None:
            if self._circuit is not None and not self._circuit.lets_through():
                raise breaker_error(self._handler.name, record, outcome, self._circuit)
            self._dead_lettered += 1
            self.outgoing.add(
                dead_letter(
                    record,
                    outcome,
                    topic=dead_letter_topic,
                    group=self._handler.group,
                    attempts=record.attempt,
                    now=time.time(),
                )
            )
            return None
        raise halt_error(self._handler.name, record, outcome)

    def counts(self, *, read: int) -> Counts:
        return Counts(
            read=read,
            written=len(self.outgoing) - self._dead_lettered,
            dead_lettered=self._dead_lettered,
            skipped=self._skipped,
        )


_Handle = Callable[[Iterator[Record], _Settled], None]


def _handle(handler: Handler, sleep: Callable[[float], None]) -> _Handle:
    if handler.batch is not None:
        return _handle_batches(handler, handler.batch, sleep)
    attempt = attempts(handler)

    def handle(records: Iterator[Record], settled: _Settled) -> None:
        settle = settled.settle
        for record in records:
            while (wait := settle(record, attempt(record, record.attempt))) is not None:
                sleep(wait)

    return handle


def _handle_batches(handler: Handler, size: int, sleep: Callable[[float], None]) -> _Handle:
    attempt = batch_attempts(handler)

    def attempt_alone(record: Record) -> Outcome:
        (outcome,) = attempt([record], [record.attempt])
        return outcome

    def handle(records: Iterator[Record], settled: _Settled) -> None:
        while batch := list(islice(records, size)):
            for record, outcome in zip(batch, attempt(batch, [1] * len(batch)), strict=True):
                wait = settled.settle(record, outcome)
                while wait is not None:
                    sleep(wait)
                    wait = settled.settle(record, attempt_alone(record))

    return handle


def _handle_async(handler: Handler) -> _Handle:
    attempt = attempts_async(handler)

    async def handle_all(records: Iterator[Record], settled: _Settled) -> None:
        for record in records:
            while (wait := settled.settle(record, await attempt(record, record.attempt))) is not None:  # noqa: ASYNC110 - not polling
                await asyncio.sleep(wait)

    return lambda records, settled: _event_loop().run(handle_all(records, settled))


@cache
def _event_loop() -> asyncio.Runner:
    """One loop for the life of the worker process, so that a handler's clients outlive the task that opened them."""
    return asyncio.Runner()
