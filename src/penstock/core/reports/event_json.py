"""The name, the fields and the JSON line of an event."""

import json
import re
from dataclasses import asdict
from typing import Any

from penstock.core.reports.events import Event
from penstock.core.settings import redacted_values
from penstock.core.text.foreign_text import printable_json

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def name(event: Event) -> str:
    return name_of(type(event))


def name_of(kind: type[Event]) -> str:
    """The event's name in logs and files: ``dead_lettered`` for ``DeadLettered``."""
    return _WORD_START.sub("_", kind.__name__).lower()


def fields(event: Event, ts: float) -> dict[str, Any]:
    """The event's name, its time ``ts`` in seconds since 1970, and its fields."""
    return {"event": name(event), "ts": round(ts, 6), **asdict(event)}


def to_json(event: Event, ts: float) -> str:
    """One line of JSON, without secrets; ``ts`` is in seconds since 1970."""
    return printable_json(json.dumps(redacted_values(fields(event, ts)), separators=(",", ":"), ensure_ascii=False))
