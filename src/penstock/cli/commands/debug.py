"""``penstock debug``: runs one record of Kafka through its handler, and shows each attempt."""

import pdb  # noqa: T100 - this command is for it
from bdb import BdbQuit
from contextlib import suppress
from typing import Annotated, Any

import typer

from penstock.app import load_app
from penstock.cli.console.connect import ConfigFile
from penstock.cli.console.screen import block, err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import moment
from penstock.cli.runtime.app_config import configure
from penstock.codecs import prepare_formats
from penstock.core.failures.dead_letter_headers import DeadLetterHeader
from penstock.core.failures.outcome import Delayed, Failed, ProducerRecord, Skipped
from penstock.core.records.record import Record
from penstock.core.records.record_place import read_place
from penstock.core.text.readable_bytes import as_plain, as_text, readable
from penstock.errors import ConfigError
from penstock.kafka import Cluster
from penstock.lifecycle import choose_brokers
from penstock.ops.debug_record import DebuggedAttempt, debug_attempts, find_record, first_attempt, handler_of, route_of
from penstock.ops.record_view import RecordView, by_app

_EXAMPLES = """
[bold]Examples[/]

  penstock debug shop:app --at orders:3@42          each attempt at this record: outcome, traceback, outputs
  penstock debug shop:app --at orders:3@42 --pdb    the debugger, where the handler raised
  penstock debug shop:app --at orders:3@42 --step   the debugger, at the first line of the handler
  penstock debug shop:app --at orders:3@42 --json
"""
_INDENT = "    "


def register(app: typer.Typer) -> None:
    app.command("debug", epilog=_EXAMPLES)(debug)


def debug(
    reference: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="The app: its module and its variable, such as shop:app.")
    ],
    *,
    at: Annotated[str, typer.Option("--at", metavar="TOPIC:PARTITION@OFFSET", help="The record, such as orders:3@42.")],
    handler_name: Annotated[
        str | None,
        typer.Option("--handler", metavar="NAME", help="The handler, if several consume the partition."),
    ] = None,
    most: Annotated[int, typer.Option("--attempts", min=1, metavar="N", help="Make at most N attempts.")] = 10,
    post_mortem: Annotated[
        bool, typer.Option("--pdb", help="Open the debugger where the first failed attempt raised.")
    ] = False,
    step: Annotated[
        bool, typer.Option("--step", help="Open the debugger at the first line of the handler (def only).")
    ] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of all handlers or of one (ship.concurrency=200), or a setting of the Kafka client "
            "(settings.security.protocol=SASL_SSL). Repeatable.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one record through its handler, in this process, and show each attempt.

    Nothing is written or committed to Kafka: outputs and dead letters are only shown. What your own code does besides
    happens. Attempts follow each other without the waits between them.
    """
    if as_json and (post_mortem or step):
        raise ConfigError("--pdb and --step ask questions, and --json is for programs.", hint="Leave one of them out.")
    tp, offset = read_place(at, name="--at")
    app = configure(load_app(reference), file=config, brokers=brokers, flags=settings or []).app
    handler = handler_of(app, tp, handler_name)
    prepare_formats(app)
    record = find_record(Cluster(choose_brokers(None, app.brokers), app.settings), tp, offset)
    handler = route_of(handler, record, handler_name)
    seen = by_app(app)(record.topic, handler.group).see(record)
    if not as_json:
        _show_record(handler.name, record, seen)
    tried: list[DebuggedAttempt] = []
    first, call = first_attempt(handler, record), pdb.runcall if step else None
    with suppress(BdbQuit):
        for attempt in debug_attempts(handler, record, most=most, first=first, call=call):
            tried.append(attempt)
            if not as_json:
                _show_attempt(attempt)
            if post_mortem and attempt.error is not None:
                pdb.post_mortem(attempt.error.__traceback__)
                break
    if as_json:
        print_json(
            {
                "handler": handler.name,
                "record": {**_where(record), **seen.as_json(), "headers": _headers(record.headers)},
                "attempts": [_attempt_as_json(each) for each in tried],
            }
        )
    else:
        err.print("Nothing was written or committed to Kafka.", style="dim")


def _show_record(handler: str, record: Record, seen: RecordView) -> None:
    when = moment(record.timestamp_ms / 1000) if record.timestamp_ms >= 0 else "-"
    rows = [("record", f"{record} of {when}"), ("handler", handler), ("key", seen.key_text(record))]
    rows += [("header", f"{name}={as_text(value)}") for name, value in record.headers]
    for name, text in [*rows, ("value", seen.value_text(record))]:
        out.print(f"{name:8}", style="bold", end="")
        out.print(text, soft_wrap=True)


def _show_attempt(attempt: DebuggedAttempt) -> None:
    out.print()
    out.print(f"attempt {attempt.number}", style="bold", end=" ")
    out.print(f"({attempt.seconds:.3f} s): {_outcome(attempt)}", soft_wrap=True)
    if isinstance(attempt.outcome, Failed) and attempt.outcome.traceback:
        out.print(block(attempt.outcome.traceback, indent=_INDENT), style="yellow", soft_wrap=True)
    out.print(f"  {attempt.then}", soft_wrap=True)
    for each in attempt.writes:
        out.print(
            f"  would write to {each.topic}: key {as_text(each.key)}, value {as_text(each.value)}", soft_wrap=True
        )
        for name, value in each.headers:
            if name == DeadLetterHeader.TRACEBACK:  # shown above
                continue
            out.print(f"  {_INDENT}{name}={as_text(value)}", soft_wrap=True)


def _outcome(attempt: DebuggedAttempt) -> str:
    match attempt.outcome:
        case Failed(error_type=kind, message=message):
            return f"failed: {kind}: {message}"
        case Skipped(reason=reason):
            return f"skipped: {reason}" if reason else "skipped"
        case Delayed(until=until, reason=reason):
            why = f": {reason}" if reason else ""
            return f"delayed until {moment(until)}{why}"
        case _:
            return "done"


def _attempt_as_json(attempt: DebuggedAttempt) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "attempt": attempt.number,
        "seconds": round(attempt.seconds, 6),
        "outcome": type(attempt.outcome).__name__.lower(),
        "then": attempt.then,
        "writes": [_written(each) for each in attempt.writes],
    }
    match attempt.outcome:
        case Failed(error_type=kind, message=message, traceback=traceback):
            shown |= {"error_type": kind, "message": message, "traceback": traceback}
        case Skipped(reason=reason):
            shown["reason"] = reason
        case Delayed(until=until, seconds=seconds, reason=reason):
            shown |= {"until": until, "delay_seconds": seconds, "reason": reason}
    return shown


def _written(record: ProducerRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "key": as_plain(readable(record.key)),
        "value": as_plain(readable(record.value)),
        "headers": _headers(record.headers),
    }


def _where(record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
    }


def _headers(headers: Any) -> dict[str, Any]:
    return {name: as_plain(readable(value)) for name, value in headers}
