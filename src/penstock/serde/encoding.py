"""From what a handler returns to the bytes of an output record."""

from typing import Any

import msgspec

_encode_json = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """Bytes as they are, text as UTF-8, pydantic models by their own rules, and everything else as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "model_dump_json"):
        return bytes(value.model_dump_json().encode())
    return _encode_json(value)
