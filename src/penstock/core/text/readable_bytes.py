"""Bytes as people read them: JSON, text, or what is left in hexadecimal."""

import json
from typing import Any

from penstock.core.text.foreign_text import printable_line

_MAX_DEPTH_ERRORS = (ValueError, RecursionError)


def readable(data: bytes | None) -> Any:
    """JSON where it is an object or a list, else text, else the bytes as they are; None stays None."""
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
    """The same for JSON: bytes that are no text become an object that says so."""
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def as_text(data: bytes | None, *, limit: int | None = None) -> str:
    """In one line of a table, as ``printable_line`` shows it; ``limit`` bounds its length."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = f"0x{data.hex()}"
    return printable_line(text, limit=limit)
