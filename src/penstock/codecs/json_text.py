"""Converts decoded values to JSON and back, for the command line. Dates become text, bytes ``{"hex": ...}``."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from penstock.codecs.avro_schemas import kind_of, named_types, resolved
from penstock.codecs.codec_factory import codec_of
from penstock.core.records.record import Header
from penstock.core.settings import Registry
from penstock.serde import Avro, Codec, Format, Protobuf, to_plain

Encode = Callable[[Any], tuple[bytes, tuple[Header, ...]]]

_AS_TEXT = (datetime, date, time)


def to_json(value: Any) -> Any:  # noqa: PLR0911 - one for each kind of value
    """Convert any decoded value to what JSON can hold."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return {"hex": value.hex()}
    if isinstance(value, Mapping):
        return {str(name): to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(each) for each in value]
    if isinstance(value, _AS_TEXT):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - an extra

        return MessageToDict(value, preserving_proto_field_name=True)
    try:
        plain = to_plain(value)
    except TypeError:
        return str(value)
    return str(value) if plain is value else to_json(plain)


def json_encoder(format_: Format, *, registry: Registry | None, topic: str) -> Encode:
    """Return a function from JSON to a record's bytes. A value that does not fit raises ValueError or TypeError."""
    codec: Codec = codec_of(format_, registry=registry, field="value", topic=topic)
    match format_:
        case Avro():
            return lambda value: codec.encode(_native(value, codec.own_schema()))  # type: ignore[attr-defined] # Avro's
        case Protobuf(message=message):
            return lambda value: codec.encode(_message(value, message))
    return codec.encode


def _message(value: Any, message: Any) -> Any:
    from google.protobuf.json_format import ParseDict, ParseError  # noqa: PLC0415 - an extra

    try:
        return ParseDict(value, message())
    except (ParseError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _native(value: Any, schema: Any) -> Any:
    """Convert JSON to the types that fastavro writes. A part that does not fit stays, and fastavro's error names it."""
    return _Natives(named_types(schema)).value(value, schema)


class _Natives:
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def value(self, value: Any, schema: Any) -> Any:
        schema = resolved(schema, self._names)
        kind = kind_of(schema)
        if kind == "union":
            return self._of_union(value, schema)
        if kind == "record" and isinstance(value, Mapping):
            types = {each["name"]: each["type"] for each in schema["fields"]}
            return {name: self.value(each, types[name]) if name in types else each for name, each in value.items()}
        if kind == "array" and isinstance(value, list):
            return [self.value(each, schema["items"]) for each in value]
        if kind == "map" and isinstance(value, Mapping):
            return {name: self.value(each, schema["values"]) for name, each in value.items()}
        return _scalar(value, kind, schema.get("logicalType") if isinstance(schema, Mapping) else None)

    def _of_union(self, value: Any, branches: list[Any]) -> Any:
        from fastavro.validation import validate  # noqa: PLC0415 - an extra

        if value is None:
            return None
        for branch in branches:
            made = self.value(value, branch)
            if validate(made, resolved(branch, self._names), raise_errors=False):
                return made
        return value


def _scalar(value: Any, kind: str, logical: str | None) -> Any:
    try:
        if logical == "decimal" and isinstance(value, str | int | float) and not isinstance(value, bool):
            return Decimal(str(value))
        if kind in ("bytes", "fixed"):
            is_hex = isinstance(value, Mapping) and set(value) == {"hex"}
            return bytes.fromhex(str(value["hex"])) if is_hex else value.encode() if isinstance(value, str) else value
        read = _LOGICAL.get(logical or "")
        return read(value) if read is not None and isinstance(value, str) else value
    except (ValueError, InvalidOperation):
        return value


_LOGICAL: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    **dict.fromkeys(("timestamp-millis", "timestamp-micros"), datetime.fromisoformat),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros"), datetime.fromisoformat),
}
