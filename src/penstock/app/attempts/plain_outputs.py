"""Runs the works of handlers whose records nearly always have one plain output or none, with little cost per record.

An attempt of its own for each record, with an outcome and an output as objects, costs more than to decode the record.
Here one loop attempts many records, and keeps only the bytes of their outputs. Spark tasks use it on their own thread.
"""

from collections.abc import Callable, Iterator
from typing import Any

from penstock.app.attempts.called_handler import called_handler
from penstock.app.attempts.handler_failure import failure_maker
from penstock.app.attempts.handler_outputs import encoding_bug, outcome_maker
from penstock.app.attempts.record_adapter import Arguments, RecordAdapter, encoder_of
from penstock.app.attempts.record_times import may_have_times
from penstock.app.attempts.time_limit import within_limit
from penstock.app.attempts.work import Work
from penstock.app.attempts.work_runner import RunWork, work_runner
from penstock.app.handler import Handler
from penstock.app.out import Out
from penstock.app.routing.route_group import RouteGroup
from penstock.core.failures.outcome import DONE, DependencyUnavailable, Done, Outcome, Skip, Skipped, Unfinished
from penstock.core.progress.lease import FOREVER
from penstock.core.scheduling.lanes import AnyRecord, Epoch, LaneRun
from penstock.serde import Format

WriteValues = Callable[[Epoch, str, list[AnyRecord], list[bytes | None], list[bytes]], None]
"""Writes to a topic the outputs of records, in this order: takes the records, and the key and value of each output."""

_AttemptMany = Callable[[Iterator[AnyRecord], list[bytes | None]], tuple[int, Outcome | None]]
"""Attempts records, and appends for each the bytes of its output, or None.

It stops at a record with another outcome, for which it appends nothing. Returns how many None it has appended, and that
outcome.
"""


def plain_runner(handler: Handler, adapter: RecordAdapter, write: WriteValues) -> RunWork:
    """The function that runs a work of a ``def`` handler, and writes its plain outputs: their records are ``DONE``.

    It is for the thread that also reads the outcomes, so nobody looks at a work while it runs.
    """
    one_by_one = work_runner(handler, adapter, FOREVER)
    attempt_many = _attempt_many(handler, adapter)
    if attempt_many is None:
        return one_by_one
    topic, key_of, returns_outs = handler.default_topic or "", adapter.key_of, False

    def run_work(work: Work) -> None:
        nonlocal returns_outs
        if returns_outs:
            one_by_one(work)
            return
        for run in work.runs():
            if not run.epoch.dispatching:
                continue
            values, nones = _attempt_run(attempt_many, work, run)
            # Such a handler gains nothing here: each of its runs would end at its first record.
            returns_outs = returns_outs or _has_outputs(run.outcomes[-1])
            records, outputs = _written(run.records, values, nones)
            if outputs:
                write(run.epoch, topic, records, list(map(key_of, records)), outputs)

    return run_work


def _attempt_run(attempt_many: _AttemptMany, work: Work, run: LaneRun) -> tuple[list[bytes | None], int]:
    """Attempt the records of this run. Returns the output of each that was attempted, or None, and how many are None.

    It stops behind an output that is more than a value. The task writes that one when it reads the outcomes, and hands
    the rest out again: what follows must not be written before.
    """
    values: list[bytes | None] = []
    nones, left, outcomes = 0, iter(run.records), run.outcomes
    while True:
        found, outcome = attempt_many(left, values)
        nones += found
        outcomes.extend([DONE] * (len(values) - len(outcomes)))
        if outcome is None:
            return values, nones
        outcomes.append(outcome)
        values.append(None)
        nones += 1
        if _has_outputs(outcome) or (isinstance(outcome, Unfinished) and work.stops_at(run, outcome)):
            return values, nones


def _has_outputs(outcome: Outcome) -> bool:
    return isinstance(outcome, Done) and bool(outcome.outputs)


def _written(records: list[AnyRecord], values: list[Any], nones: int) -> tuple[list[AnyRecord], list[bytes]]:
    """The records that have an output, and the outputs."""
    if not nones:
        return records, values
    pairs = [pair for pair in zip(records, values) if pair[1] is not None]  # noqa: B905 - maybe not all were begun
    return [record for record, _ in pairs], [value for _, value in pairs]


def _attempt_many(handler: Handler, adapter: RecordAdapter) -> _AttemptMany | None:  # noqa: C901 - one loop, see below
    """None if an attempt of this handler needs more than the value of its record."""
    handler = called_handler(handler) if not isinstance(handler, RouteGroup) else handler
    if not is_plain(handler):
        return None
    function, arguments = within_limit(handler, adapter), Arguments(handler, adapter)
    decode = arguments.decode
    if decode is None:
        return None
    source_of = arguments.source_of or _itself
    has_topic, encode = handler.default_topic is not None, encoder_of(handler)
    to_outcome, fail = outcome_maker(handler, adapter), failure_maker(handler, adapter)

    # The same as ``attempts`` does. All is inlined, because it runs for every record and each call costs.
    def attempt_many(left: Iterator[AnyRecord], values: list[bytes | None]) -> tuple[int, Outcome | None]:
        add, nones = values.append, 0
        try:
            for record in left:
                result = function(decode(source_of(record)))
                if result is None:
                    add(None)
                    nones += 1
                    continue
                if not has_topic or isinstance(result, Out):
                    return nones, to_outcome(record, result)
                try:
                    value = encode(result)
                except DependencyUnavailable:
                    raise
                except Exception as error:
                    raise encoding_bug(result, error) from error
                add(value)
        except Skip as skip:
            return nones, Skipped(str(skip))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return nones, fail(error)
        return nones, None

    return attempt_many


def is_plain(handler: Handler) -> bool:
    """Whether the value alone decides what happens with a record."""
    signature = handler.signature
    if isinstance(handler, RouteGroup) or handler.batch or signature.is_async or signature.has_several_outputs:
        return False
    if signature.takes_record or signature.takes_transaction or may_have_times(handler):
        return False
    if handler.tracing or handler.dedupe is not None:
        return False
    return handler.carry_headers is False and not isinstance(handler.to_value, Format)


def _itself(record: AnyRecord) -> Any:
    return record
