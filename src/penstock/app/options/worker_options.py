"""Checks of the options that say where a handler runs, what runs first, and who finishes its records."""

import os
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, get_args

from penstock.app.options import CommitMode, Concurrency, Scale, WorkerKind
from penstock.core.records.record_ids import RecordId
from penstock.core.scheduling.rate import Rate
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler

Wrong = Callable[[str, str], ConfigError]

_RAW_FIELDS = 'by.header("tenant"), by.key(before=":") or a function of the record'


def largest_concurrency(concurrency: Concurrency, most: int, workers: WorkerKind) -> int:
    """How many records or batches run at once at most."""
    if concurrency != "auto":
        return concurrency
    # Another process than there are cores would compute no more.
    return min(most, os.cpu_count() or 1) if workers == "process" else most


def check_workers(handler: "Handler", wrong: Wrong) -> None:
    _check_concurrency(handler, wrong)
    if handler.workers not in get_args(WorkerKind):
        raise wrong(
            f"workers={handler.workers!r} is not a kind of worker.",
            'Use "process" for handlers that compute; "auto" runs def on threads and async def on an event loop.',
        )
    _check_scale(handler, wrong)
    _check_fairness(handler, wrong)
    _check_rate(handler, wrong)
    if handler.workers == "process" and handler.signature.is_async:
        raise wrong('it is async, which workers="process" cannot run.', "Use def, or leave workers= out.")
    if handler.commit not in get_args(CommitMode):
        raise wrong(f"commit={handler.commit!r} does not exist.", 'Use "auto", "record" or "manual".')
    if handler.commit == "manual" and not handler.signature.takes_record:
        raise wrong(
            'commit="manual" needs record.ack(), but it does not take the record.',
            "Add a parameter: record: Record (or records: list[Record] with batch=).",
        )
    if handler.commit == "manual" and handler.workers == "process":
        raise wrong("record.ack() does not work in a worker process.", 'Use commit="auto".')


def _check_concurrency(handler: "Handler", wrong: Wrong) -> None:
    given = handler.concurrency
    if given != "auto" and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise wrong(f"concurrency={given!r} is not a count.", 'Use a whole number of at least 1, or "auto".')
    if given == "auto" and handler.is_shared:
        raise wrong(
            'concurrency="auto" does not work with mode="share": the broker hands out as many records as it names.',
            "Use a number.",
        )


def _check_rate(handler: "Handler", wrong: Wrong) -> None:
    rate = handler.rate
    if rate is None:
        return
    if not isinstance(rate, Rate):
        raise wrong(f"rate={rate!r} is not a Rate.", 'Use Rate(100, per="1s").')
    if handler.batch is not None and rate.by is not None:
        raise wrong(
            "a batch has records of several tenants, so it cannot keep a rate for each.",
            "Leave by= out: the rate then counts batches. Or leave batch= out.",
        )
    if rate.shared and handler.partitions:
        raise wrong(
            "Rate.shared=True divides the rate over the members of the group, and with partitions= there is no group.",
            "Leave shared= out.",
        )


def _check_scale(handler: "Handler", wrong: Wrong) -> None:
    if handler.scale not in get_args(Scale):
        raise wrong(f"scale={handler.scale!r} does not exist.", 'Use "partition" or "cpu".')
    if handler.scale == "cpu" and handler.order == "partition":
        raise wrong(
            'scale="cpu" distributes the records of a partition over cores, so it cannot keep their order.',
            'Use order="key" (the default) or order="none".',
        )


def _check_fairness(handler: "Handler", wrong: Wrong) -> None:
    for option in ("fair_by", "priority"):
        declared = getattr(handler, option)
        if declared is None:
            continue
        if not isinstance(declared, RecordId) and not callable(declared):
            raise wrong(f"{option}={declared!r} does not say what to read of a record.", f"Use {_RAW_FIELDS}.")
        if isinstance(declared, RecordId) and declared.source == "value":
            raise wrong(
                f"{option}= reads a field of the value, but records take turns before they are decoded.",
                f"Use {_RAW_FIELDS}.",
            )
        if handler.order == "partition":
            raise wrong(
                f'{option}= changes which record runs first, and order="partition" says that already.',
                'Use order="key" (the default with it) or order="none".',
            )
    if handler.weights and handler.fair_by is None:
        raise wrong("weights= says how large the shares of tenants are, but nothing names tenants.", "Add fair_by=.")
    if not isinstance(handler.weights, Mapping):
        raise wrong(f"weights={handler.weights!r} is no mapping.", 'Use a dict such as {"gold": 3}.')
    for tenant, weight in handler.weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not (isfinite(weight) and weight > 0):
            raise wrong(f"weights= gives {tenant!r} the weight {weight!r}.", "Use numbers above 0; 1 is the default.")
