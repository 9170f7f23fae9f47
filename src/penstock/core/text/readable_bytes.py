"""Bytes in a readable form: JSON, text, or hexadecimal."""

import json
from typing import Any

from penstock.core.text.foreign_text import printable_line

_MAX_DEPTH_ERRORS = (ValueError, RecursionError)


def readable(data: bytes | None) -> Any:
    """The parsed JSON if it is an object or a list, else the text, else the bytes themselves; None stays None."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except _MAX_DEPTH_ERRORS:
            return text
    return text


def as_plain(value: Any) -> Any:
    """The same value for JSON output: bytes become an object with their hexadecimal form."""
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def as_text(data: bytes | None, *, limit: int | None = None) -> str:
    """One line for a table, as ``printable_line`` shows it, of at most ``limit`` characters."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = f"0x{data.hex()}"
    return printable_line(text, limit=limit)
