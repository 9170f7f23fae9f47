"""Checks of the options that decide a handler's guarantees: delivery, share groups, progress in a database."""

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from penstock.app.offset_store import check_offsets, takes_transactions
from penstock.app.options import Delivery, Mode, refuse_unsupported
from penstock.core.failures.retry import NO_RETRY
from penstock.core.records.record_ids import RecordId
from penstock.core.scheduling.in_flight import DEFAULT_BYTES
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler

Wrong = Callable[[str, str], ConfigError]


def check_guarantees(handler: "Handler", wrong: Wrong) -> None:
    if handler.delivery not in get_args(Delivery):
        guarantees = '"at-least-once", "at-most-once" or "exactly-once"'
        raise wrong(f"delivery={handler.delivery!r} does not exist.", f"Use {guarantees}.")
    _check_exactly_once(handler, wrong)
    _check_at_most_once(handler, wrong)
    _check_offsets(handler, wrong)
    _check_mode(handler, wrong)


def _check_exactly_once(handler: "Handler", wrong: Wrong) -> None:
    if handler.is_exactly_once and handler.settings.get("isolation.level") == "read_uncommitted":
        # The client then reads the group's offsets without waiting for open transactions too: a new owner of a
        # partition would miss a commit that the coordinator has decided and not yet written.
        raise wrong(
            'delivery="exactly-once" needs committed offsets, and isolation.level=read_uncommitted does not wait for '
            "the transactions that commit them.",
            "Leave that setting out.",
        )


def _check_at_most_once(handler: "Handler", wrong: Wrong) -> None:
    if not handler.is_at_most_once:
        return
    useless = {
        "retry=": handler.retry != NO_RETRY,
        "retry_topics=": bool(handler.retry_topics),
        f"commit={handler.commit!r}": handler.commit != "auto",
        "max_in_flight_bytes": handler.max_in_flight_bytes != DEFAULT_BYTES,
        "commit_after=": handler.commit_after is not None,
    }
    for option, is_used in useless.items():
        if is_used:
            raise wrong(
                f'{option} has no effect with delivery="at-most-once": a record is committed before its only attempt.',
                'Leave it out, or use delivery="at-least-once".',
            )
    if handler.honor_times:
        raise wrong(
            'honor_times= does not work with delivery="at-most-once": a record is committed before it could wait, so a '
            "stop would lose it.",
            'Leave it out, or use delivery="at-least-once".',
        )


def _check_mode(handler: "Handler", wrong: Wrong) -> None:
    if handler.mode not in get_args(Mode):
        raise wrong(f"mode={handler.mode!r} does not exist.", 'Use "group" or "share".')
    if not handler.is_shared:
        return
    if handler.order != "none":
        raise wrong("a share group keeps no order.", "Leave order= out, or leave mode= out.")
    if handler.dead_letter is None:
        raise wrong(
            "the brokers drop a record of a share group after too many deliveries.",
            "Name a topic for such records: dead_letter=...",
        )
    refuse_unsupported(handler, "share")


def _check_offsets(handler: "Handler", wrong: Wrong) -> None:
    takes_transaction = handler.signature.takes_transaction
    if handler.offsets is None:
        if takes_transaction:
            raise wrong(
                "it takes tx, the transaction that keeps its progress, but offsets= names no database.",
                'Use offsets="postgresql://..." or "sqlite:///...", or call that parameter something else.',
            )
        return
    try:
        check_offsets(handler.offsets)
    except ConfigError as error:
        raise wrong(error.problem, error.hint) from error
    if handler.delivery != "at-least-once":
        raise wrong(
            f"delivery={handler.delivery!r} keeps progress in Kafka, and offsets= keeps it elsewhere.",
            "Leave one of them out. With tx, the database has each write of the handler once anyway.",
        )
    if takes_transaction:
        _check_transaction(handler, wrong)


def _check_transaction(handler: "Handler", wrong: Wrong) -> None:
    if not takes_transactions(handler.offsets):
        raise wrong("it takes tx, but offsets= names no database.", "Leave tx out, or name a database.")
    refused = {
        "async def": handler.signature.is_async,
        'workers="process"': handler.workers == "process",
        'commit="manual"': handler.commit == "manual",
    }
    for option, is_used in refused.items():
        if is_used:
            raise wrong(
                f"it takes tx, which does not work with {option}: a transaction belongs to a thread.",
                'Use def, workers="auto" and commit="auto".',
            )
    if handler.declares_outputs:
        what = "to=" if handler.to is not None else "outputs"
        raise wrong(
            f"it takes tx and has {what}: no transaction covers both a database and Kafka, so an output could be lost.",
            "Write the output to a table in the same transaction and send it from there, or leave tx out.",
        )


def check_dedupe(handler: "Handler", wrong: Wrong) -> None:
    """``dedupe=`` needs one call for each record, in the process that keeps the ids."""
    declared = handler.dedupe
    if declared is None:
        return
    if not isinstance(declared, RecordId):
        raise wrong(f"dedupe={declared!r} does not say what identifies a record.", 'Use by("id", for_="1d").')
    if not declared.seconds:
        raise wrong("dedupe= does not say how long ids are remembered.", 'Add for_=: by("id", for_="1d").')
    if declared.source == "value" and "value" not in handler.signature.parts:
        raise wrong(
            f"dedupe= reads the field {declared.name!r} of the value, but the handler takes no value.",
            "Add a parameter for the value, or use by.header(...) or by.key(...).",
        )
    refused = {
        "batch=": (handler.batch is not None, "a duplicate would have to leave the batch"),
        'workers="process"': (handler.workers == "process", "each process would know only its own ids"),
        'commit="manual"': (handler.commit == "manual", "an id is handled when the handler returns"),
    }
    for option, (is_used, reason) in refused.items():
        if is_used:
            raise wrong(f"dedupe= does not work with {option}: {reason}.", "Leave one of them out.")
