"""One dead letter of ``penstock dlq show``: the record beside the reason why it failed, or both as JSON."""

import json
from typing import Any

from rich.columns import Columns
from rich.panel import Panel

from penstock.cli.console.screen import block, out
from penstock.cli.console.tables import moment
from penstock.core.failures.dead_letter_headers import replay_count
from penstock.core.text.foreign_text import printable_json, printable_line
from penstock.core.text.readable_bytes import as_plain, readable
from penstock.ops.dead_letters import Letter
from penstock.ops.record_view import RecordView


def show_letter(letter: Letter, seen: RecordView) -> None:
    out.print(Columns([_record_panel(letter, seen), _note_panel(letter)], expand=True))
    if letter.note.traceback:
        out.print(block(letter.note.traceback, indent="  "), soft_wrap=True)


def letter_json(letter: Letter, seen: RecordView) -> dict[str, Any]:
    record, note = letter.record, letter.note
    return {
        "partition": record.partition,
        "offset": record.offset,
        **seen.as_json(),
        "headers": {name: as_plain(readable(value)) for name, value in record.headers},
        "style": note.style,
        "source": {
            "topic": note.topic,
            "partition": note.partition,
            "offset": note.offset,
            "timestamp_ms": note.timestamp_ms,
        },
        "group": note.group,
        "attempts": note.attempts,
        "error_type": note.error_type,
        "message": note.message,
        "traceback": note.traceback,
        "died_at": letter.died_at,
        "returns": replay_count(record.headers),
    }


def _record_panel(letter: Letter, seen: RecordView) -> Panel:
    record, value = letter.record, seen.value
    is_whole = isinstance(value, dict | list) and seen.value_problem is None and not _is_hex(value)
    whole = json.dumps(value, indent=2, ensure_ascii=False) if is_whole else None
    shown = seen.value_text(record) if whole is None else printable_json(whole)
    lines = [f"key    {seen.key_text(record)}", "", shown]
    return Panel(block("\n".join(lines)), title=block(str(record)), title_align="left")


def _is_hex(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"hex"}


def _note_panel(letter: Letter) -> Panel:
    note = letter.note
    source = f"{note.topic}[{note.partition}]@{note.offset}" if note.topic else "unknown"
    facts = {
        "source": source,
        "group": note.group,
        "attempts": note.attempts,
        "returns": replay_count(letter.record.headers) or None,
        "failed": moment(letter.died_at),
        "error": note.error_type,
        "message": note.message,
    }
    lines = [f"{name:<9}{printable_line(str(value))}" for name, value in facts.items() if value not in (None, "")]
    return Panel(block("\n".join(lines)), title=block(note.style or "no headers"), title_align="left")
