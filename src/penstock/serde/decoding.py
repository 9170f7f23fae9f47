"""Decoders by type hint: the hint of a handler's first parameter says what its records' values are."""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from penstock.core.outcome import Undecodable
from penstock.errors import ConfigError

Decode = Callable[[bytes | None], Any]


def decoder_for(hint: Any) -> Decode:
    """The decoder for a type hint.

    ``bytes`` is the value as it is and ``str`` is UTF-8 text; every other type is read from JSON and checked field by
    field: dict, list, int, dataclass, TypedDict, NamedTuple, pydantic model. ``T | None`` also takes tombstones.
    Whatever cannot be decoded raises Undecodable with a reason.
    """
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = tuple(kind for kind in alternatives if kind is not NoneType)
    decode = _bytes_decoder(kinds[0]) if len(kinds) == 1 and kinds[0] in (bytes, str) else _json_decoder(hint, kinds)
    return _accepting_tombstones(decode) if NoneType in alternatives else _refusing_tombstones(decode)


def _bytes_decoder(kind: type) -> Callable[[bytes], Any]:
    return _text if kind is str else bytes


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"the value is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _json_decoder(hint: Any, kinds: tuple[Any, ...]) -> Callable[[bytes], Any]:
    if len(kinds) == 1 and hasattr(kinds[0], "model_validate_json"):
        return _pydantic_decoder(kinds[0])
    try:
        decode = msgspec.json.Decoder(hint).decode
        foreign = _foreign_type(msgspec.inspect.type_info(hint))
    except Exception as error:
        raise _no_decoder(hint, str(error)) from error
    if foreign is not None:
        raise _no_decoder(hint, f"{foreign!r} cannot be read from JSON")

    def decode_json(value: bytes) -> Any:
        try:
            return decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Undecodable(str(error)) from error

    return decode_json


def _no_decoder(hint: Any, why: str) -> ConfigError:
    return ConfigError(
        f"No decoder fits the type hint {hint!r}: {why}.",
        hint="Use bytes, str, dict, a dataclass, a TypedDict or a pydantic model.",
    )


def _foreign_type(root: Any) -> type | None:
    """A type somewhere inside that msgspec would only refuse record by record; better to know when it is declared."""
    seen: set[int] = set()
    found = [root]
    while found:
        info = found.pop()
        if isinstance(info, msgspec.inspect.CustomType):
            return info.cls
        if isinstance(info, msgspec.Struct) and id(info) not in seen:
            seen.add(id(info))  # types may refer to themselves
            found.extend(getattr(info, name) for name in info.__struct_fields__)
        elif isinstance(info, tuple):
            found.extend(info)
    return None


def _pydantic_decoder(model: Any) -> Callable[[bytes], Any]:
    validate = model.model_validate_json

    def decode_model(value: bytes) -> Any:
        try:
            return validate(value)
        except ValueError as error:
            raise Undecodable(_pydantic_reason(error)) from error

    return decode_model


def _pydantic_reason(error: Any) -> str:
    """One line for all that is wrong; pydantic's own text has several lines for each field."""
    if not hasattr(error, "errors"):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or '$'}: {each['msg']}" for each in error.errors())


def _accepting_tombstones(decode: Callable[[bytes], Any]) -> Decode:
    return lambda value: None if value is None else decode(value)


def _refusing_tombstones(decode: Callable[[bytes], Any]) -> Decode:
    def decode_value(value: bytes | None) -> Any:
        if value is None:
            raise Undecodable("the value is null (a tombstone); a handler that takes those has `| None` in its hint")
        return decode(value)

    return decode_value
