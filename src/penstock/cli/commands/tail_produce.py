"""``penstock tail`` prints records, ``penstock produce`` writes them."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import Progress

from penstock.cli.commands.lag import PANEL
from penstock.cli.console.completion import TopicName
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.decode_flags import (
    KeyAs,
    OfApp,
    RegistryUrl,
    ValueAs,
    choose_registry,
    format_of,
    record_decoder_for,
)
from penstock.cli.console.screen import err, print_json, print_json_data, print_line
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import moment
from penstock.codecs.json_text import json_encoder
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.filters.expression import Expression
from penstock.core.records.record import Record
from penstock.core.text.plurals import counted
from penstock.core.text.readable_bytes import as_plain, as_text, readable
from penstock.core.text.timestamps import moment_or_ago
from penstock.errors import ConfigError, TopicError
from penstock.lifecycle import stop_on_signals
from penstock.ops.dead_letters import record_values
from penstock.ops.produce_records import (
    as_json_text,
    encoded,
    from_json_lines,
    from_lines,
    generated,
    produce,
    with_schema,
)
from penstock.ops.record_view import RecordView
from penstock.ops.tail_topic import RecordFilter, Start, Tail

_TAIL_EXAMPLES = """
[bold]Examples[/]

  penstock tail orders                            the last ten records
  penstock tail orders --follow                   the last ten, then new records until Ctrl+C
  penstock tail orders --since 15m --key c-17 --header trace=abc
  penstock tail orders --from-beginning --where 'value["amount"] > 100' --json > records.jsonl
  penstock tail orders --value-as avro            decoded with schemas of the schema registry
  penstock tail orders --app shop:app             decoded as the app's handlers do
"""
_PRODUCE_EXAMPLES = """
[bold]Examples[/]

  echo hello | penstock produce orders
  penstock produce orders orders.txt --key-separator :
  penstock produce orders records.jsonl --json-lines          the format of `tail --json`
  penstock produce orders --generate 100000 --key 'c-$n' --value '{"n": $n, "at": $now}'
  penstock produce orders orders.jsonl --schema order.avsc    read JSON values, write Avro
"""


class Subject(StrEnum):
    topic = "topic"
    record = "record"
    topic_record = "topic-record"


def register(app: typer.Typer) -> None:
    app.command("tail", epilog=_TAIL_EXAMPLES, rich_help_panel=PANEL)(tail)
    app.command("produce", epilog=_PRODUCE_EXAMPLES, rich_help_panel=PANEL)(produce_)


def tail(
    topic: TopicName,
    *,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=0, metavar="N", help="Start with the last N records. Default: 10.")
    ] = None,
    offset: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Start at this offset in each partition.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start at this time: 15m (ago), or 2030-01-31T12:00:00 (UTC).")
    ] = None,
    beginning: Annotated[bool, typer.Option("--from-beginning", help="Start with the first record.")] = False,
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition. Repeatable.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Only records with this key.")] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME[=VALUE]", help="Only records with this header. Repeatable."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help="Only records for which this Python expression is true."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N records.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new records until Ctrl+C.")] = False,
    value_as: ValueAs = None,
    key_as: KeyAs = None,
    app: OfApp = None,
    registry: RegistryUrl = None,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Print decoded records of a topic without joining a group. With --json, print one object a line."""
    chosen = [each for each in (last, offset, since, beginning or None) if each is not None]
    if len(chosen) > 1:
        raise ConfigError(
            "--last, --offset, --since and --from-beginning cannot be combined.", hint="Use only one of them."
        )
    start = Start(
        last=10 if last is None else last,
        offset=offset,
        since=None if since is None else moment_or_ago(since, now=time.time(), name="--since"),
        beginning=beginning,
    )
    record_filter = RecordFilter(
        key=None if key is None else key.encode(),
        headers=dict(_header(each) for each in headers or ()),
        where=None if where is None else Expression(where),
        values=lambda record: record_values(record, record_decoder.see(record)),
    )
    record_decoder = record_decoder_for(value_as=value_as, key_as=key_as, app=app, registry=registry, config=config)(
        topic, ""
    )
    source = Tail(connect(brokers, config, settings), topic, partitions or ())
    stop = threading.Event()
    with stop_on_signals(stop, lambda _line: None):
        records: Iterable[Record] = source.present(start)
        if follow:
            records = chain(records, source.to_come(stop))
        shown = 0
        for record in records:
            if stop.is_set() or shown == limit:
                break
            if record_filter.fits(record):
                _print(record, record_decoder.see(record), as_json=as_json)
                shown += 1
                if shown == limit:
                    break
    if record_filter.where is not None and record_filter.where.misses:
        err.print(
            f"--where failed for {counted(record_filter.where.misses, 'record')}, which did not match: "
            f"{record_filter.where.example}",
            markup=False,
        )


def produce_(
    topic: TopicName,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Files to read. Default: standard input.")
    ] = None,
    *,
    separator: Annotated[
        str | None, typer.Option("--key-separator", metavar="TEXT", help="Text between key and value in each line.")
    ] = None,
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help='Each line is {"key": ..., "value": ..., "headers": {}}.')
    ] = False,
    generate: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Write N records made from --key and --value.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEMPLATE", help="With --generate: template of the keys, with $n, $uuid and $now."),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="TEMPLATE", help="With --generate: template of the values. Default: $n.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Write all records to this partition.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, metavar="N", help="At most N records a second.")] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read values as JSON and write them with this Avro schema, JSON Schema or MODULE:MESSAGE.",
        ),
    ] = None,
    subject: Annotated[
        Subject, typer.Option(help="Subject of the schema in the registry: TOPIC-value, the record's name, or both.")
    ] = Subject.topic,
    register_schema: Annotated[
        bool, typer.Option("--register", help="Register the schema if the registry does not have it.")
    ] = False,
    registry: RegistryUrl = None,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Write records from lines of text or JSON, or from a template, and wait until each is acknowledged."""
    if generate is not None and (files or separator or json_lines):
        raise ConfigError("--generate reads no input.", hint="Leave out files, --key-separator and --json-lines.")
    if generate is None and (key is not None or value is not None):
        raise ConfigError("--key and --value need --generate.", hint="Add --generate N.")
    if json_lines and separator:
        raise ConfigError(
            "--key-separator cannot be combined with --json-lines.",
            hint="Leave out --key-separator: each JSON line names its key.",
        )
    for file in files or ():
        if not file.is_file():
            raise ConfigError(f"{file} is not a file.", hint="Name files to read, or none for standard input.")
    encode = None
    if schema is not None:
        format_ = format_of(schema, subject=subject.value, register=register_schema)
        encode = json_encoder(format_, registry=choose_registry(registry, config), topic=topic)
    cluster = connect(brokers, config, settings)
    count = cluster.require_topics([topic])[topic]
    if partition is not None and partition >= count:
        raise TopicError(f"Topic {topic!r} has no partition {partition}.", hint=f"It has {count}.")
    with ExitStack() as stack:
        bar = stack.enter_context(_bar(is_typed=not (generate or files) and sys.stdin.isatty(), quiet=as_json))
        task = bar.add_task("records", total=generate)
        if generate is not None:
            records = generated(generate, topic, key=key, value=value or "$n")
        else:
            as_bytes = encoded if encode is None else as_json_text
            records = _read_all(
                stack, topic, files or [], separator=separator, json_lines=json_lines, as_bytes=as_bytes
            )
        if encode is not None:
            records = with_schema(records, encode)
        written = produce(
            cluster,
            records,
            partition=partition,
            rate=rate,
            progress=lambda done: bar.update(task, completed=done),
        )
    print_json({"written": written}, indent=None) if as_json else err.print(
        f"Wrote {counted(written, 'record')} to {topic}."
    )


def _bar(*, is_typed: bool, quiet: bool) -> Progress:
    """Return the bar, which is not drawn over what somebody types in a terminal."""
    if is_typed:
        err.print("Each line is a record. Ctrl+D at the start of a line ends the input.", style="dim")
    return Progress(console=err, disable=quiet or is_typed or not err.is_terminal, transient=True)


def _read_all(
    stack: ExitStack,
    topic: str,
    files: list[Path],
    *,
    separator: str | None,
    json_lines: bool,
    as_bytes: Callable[[Any], bytes | None],
) -> Iterator[ProducerRecord]:
    sources: list[tuple[str, TextIO]] = [
        (str(file), stack.enter_context(file.open(encoding="utf-8"))) for file in files
    ]
    for name, lines in sources or [("standard input", sys.stdin)]:
        try:
            yield from (
                from_json_lines(lines, topic, name=name, as_bytes=as_bytes)
                if json_lines
                else from_lines(lines, topic, separator=separator)
            )
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{name} is not UTF-8 text.",
                hint='For other bytes use --json-lines, with {"hex": "..."} as key or value.',
            ) from error


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not name:
        raise ConfigError(f"--header {text!r} has no name.", hint="Write NAME, or NAME=VALUE.")
    return name, value.encode() if equals else None


def _print(record: Record, seen: RecordView, *, as_json: bool) -> None:
    if as_json:
        print_json_data(_as_json(record, seen))
        return
    when = moment(record.timestamp_ms / 1000) if record.timestamp_ms >= 0 else "-"
    notes = " ".join(f"{name}={as_text(value)}" for name, value in record.headers)
    line = f"{when} {record} {seen.key_text(record)} {seen.value_text(record)}"
    print_line(f"{line} [{notes}]" if notes else line)


def _as_json(record: Record, seen: RecordView) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **seen.as_json(),
        "headers": {name: as_plain(readable(value)) for name, value in record.headers},
    }
