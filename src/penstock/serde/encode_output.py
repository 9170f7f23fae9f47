"""Encoders: from the return value of a handler to the bytes of an output record."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from penstock.errors import ConfigError

_encode_json = msgspec.json.Encoder().encode

# Types that formats with a schema represent themselves.
_KEPT = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)


def encode(value: Any) -> bytes:
    """Bytes unchanged, text as UTF-8, pydantic models by ``model_dump_json``, and everything else as JSON."""
    if type(value) is dict:  # the usual output; the checks below would cost as much as the encoding
        return _encode_json(value)
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "model_dump_json"):
        return bytes(value.model_dump_json().encode())
    return _encode_json(value)


def custom_encoder(how: Any) -> Callable[[Any], bytes]:
    """The user's encoder: an object with ``encode``, or a function from the return value to bytes."""
    function = getattr(how, "encode", how)
    if not callable(function) or isinstance(how, type):
        raise ConfigError(
            f"to_value={how!r} is not an encoder.",
            hint="Use Avro(...), JsonSchema(...), Protobuf(...), an object with encode, or a function to bytes.",
        )

    def encode_custom(value: Any) -> bytes:
        encoded = function(value)
        if not isinstance(encoded, bytes):
            raise TypeError(f"the encoder returned {type(encoded).__name__}, not bytes")
        return encoded

    return encode_custom


def to_plain(value: Any) -> Any:
    """Dataclasses and models as dicts and lists. Types that formats represent themselves stay unchanged."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return msgspec.to_builtins(value, builtin_types=_KEPT)
