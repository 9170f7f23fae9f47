"""Records as the browser gets them: text that was decoded here. JavaScript would change large numbers."""

import json
from typing import Any

from penstock.core.records.record import Record
from penstock.core.text.readable_bytes import as_text
from penstock.ops.record_view import RecordView

_SHORT = 240
_LONG = 200_000


def record_line(record: Record, seen: RecordView) -> dict[str, Any]:
    """Return what a list shows of a record."""
    return {
        "partition": record.partition,
        "offset": record.offset,
        "at": None if record.timestamp_ms < 0 else record.timestamp_ms / 1000,
        "key": None if record.key is None else _cut(seen.key_text(record), _SHORT),
        "value": None if record.value is None else _cut(seen.value_text(record), _SHORT),
        "bytes": len(record.value or b""),
    }


def whole_record(record: Record, seen: RecordView) -> dict[str, Any]:
    """Return all of a record."""
    return {
        **record_line(record, seen),
        "topic": record.topic,
        "key": None if record.key is None else _laid_out(seen.key),
        "value": None if record.value is None else _laid_out(seen.value),
        "key_problem": seen.key_problem,
        "value_problem": seen.value_problem,
        "headers": [[name, _cut(as_text(value), _LONG)] for name, value in record.headers],
    }


def _laid_out(value: Any) -> str:
    """Return JSON in lines, and text as it is."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    # JSON can name half of a character, such as \\ud83d, which no text in UTF-8 contains.
    return _cut(text.encode(errors="backslashreplace").decode(), _LONG)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
