"""From what a handler returns to the bytes of an output record."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from penstock.errors import ConfigError

_encode_json = msgspec.json.Encoder().encode

# What formats have types of their own for.
_KEPT = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)


def encode(value: Any) -> bytes:
    """Bytes as they are, text as UTF-8, pydantic models by their own rules, and everything else as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "model_dump_json"):
        return bytes(value.model_dump_json().encode())
    return _encode_json(value)


def custom_encoder(how: Any) -> Callable[[Any], bytes]:
    """A user's own: an object with ``encode``, or a function from what the handler returns to bytes."""
    function = getattr(how, "encode", how)
    if not callable(function) or isinstance(how, type):
        raise ConfigError(
            f"to_value={how!r} does not encode.",
            hint="Use Avro(...), JsonSchema(...), Protobuf(...), an object with encode, or a function to bytes.",
        )

    def encode_custom(value: Any) -> bytes:
        encoded = function(value)
        if not isinstance(encoded, bytes):
            raise TypeError(f"its encoder made {type(encoded).__name__} of it, not bytes")
        return encoded

    return encode_custom


def to_plain(value: Any) -> Any:
    """Dataclasses, models and the like as dicts and lists; what formats have types of their own for stays."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return msgspec.to_builtins(value, builtin_types=_KEPT)
