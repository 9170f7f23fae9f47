"""Decoders by type hint: the type of a handler's parameter decides how values or keys are decoded."""

from collections.abc import Callable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from penstock.core.failures.outcome import DependencyUnavailable, Reject, Skip, Undecodable
from penstock.errors import ConfigError

Decode = Callable[[bytes | None], Any]

# Reasons are for people, and one value can have millions of errors.
_MAX_REASONS = 5
_MAX_LISTED_ERRORS = 1000

# pydantic collects all errors of a value, with 400 bytes and more for each: for 50 MB of wrong numbers it took 10 GB.
# So the parts of a value of this size are counted before pydantic gets it.
_LARGE_BYTES = 1_000_000
_MAX_PARTS = 500_000

_MSGSPEC_CACHE = "__msgspec_cache__"

# Outcomes that a decoder may raise itself.
_OUTCOMES = (Undecodable, DependencyUnavailable, Skip, Reject)


def decoder_for(hint: Any, *, what: str = "value") -> Decode:
    """The decoder for a type hint.

    ``bytes`` is the value unchanged and ``str`` is UTF-8 text. Every other type is read from JSON and checked field by
    field: dict, list, int, dataclass, TypedDict, NamedTuple, pydantic model. ``T | None`` also accepts tombstones.
    The decoder raises Undecodable with a reason.
    """
    kinds = kinds_of(hint)
    if len(kinds) == 1 and kinds[0] in (bytes, str):
        decode = refusing_null(_text_decoder(what), what) if kinds[0] is str else _bytes_decoder(what)
    else:
        decode = _json_decoder(hint, kinds, what)
    return accepting_null(decode) if takes_null(hint) else decode


def custom_decoder(decode: Callable[[bytes], Any], hint: Any, *, what: str = "value") -> Decode:
    """The decoder that calls a user's function. Its errors are final: the same bytes would fail again."""

    def decode_custom(data: bytes) -> Any:
        try:
            return decode(data)
        except _OUTCOMES:
            raise
        except Exception as error:
            raise Undecodable(f"the decoder of the {what} failed: {type(error).__name__}: {error}") from error

    return accepting_null(decode_custom) if takes_null(hint) else refusing_null(decode_custom, what)


def converter_for(hint: Any) -> Callable[[Any], Any] | None:
    """A function from a format's dicts, lists, numbers and dates to the type of the hint; None if it is not needed."""
    kinds = kinds_of(hint)
    if hint is Any or kinds in ((dict,), (list,), (Any,)):
        return None
    if len(kinds) == 1 and hasattr(kinds[0], "model_validate"):
        return _pydantic_converter(kinds[0])
    _check_hint(hint)

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, hint)
        except (msgspec.ValidationError, RecursionError) as error:
            raise Undecodable(str(error)) from error

    return convert


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows, without None."""
    return tuple(kind for kind in _alternatives(hint) if kind is not NoneType)


def union_members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, with None if it has None; also of ``Annotated[A | B, ...]``, as pydantic writes it."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else ()


def takes_null(hint: Any) -> bool:
    return NoneType in _alternatives(hint)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _text_decoder(what: str) -> Callable[[bytes], str]:
    def decode_text(data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Undecodable(f"the {what} is not UTF-8 text: {error.reason} at byte {error.start}") from error

    return decode_text


def _bytes_decoder(what: str) -> Decode:
    def decode_bytes(data: bytes | None) -> bytes:
        if data is None:
            raise Undecodable(null_reason(what))
        return data

    return decode_bytes


def _json_decoder(hint: Any, kinds: tuple[Any, ...], what: str) -> Decode:
    if len(kinds) == 1 and hasattr(kinds[0], "model_validate_json"):
        return refusing_null(_pydantic_decoder(kinds[0].model_validate_json, what), what)
    if any(hasattr(member, "model_validate_json") for member in union_members(hint)):
        return refusing_null(_pydantic_decoder(_pydantic_union(hint), what), what)
    _check_hint(hint)
    decode: Callable[[Any], Any] = msgspec.json.Decoder(hint).decode

    # Null is looked for here and not by ``refusing_null``: most handlers decode JSON, and a call costs measurable time.
    def decode_json(data: bytes | None) -> Any:
        if data is None:
            raise Undecodable(null_reason(what))
        try:
            return decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError, MemoryError) as error:
            raise Undecodable((str(error) or type(error).__name__) if data else empty_reason(what)) from error

    return decode_json


def _check_hint(hint: Any) -> None:
    try:
        msgspec.json.Decoder(hint)
        foreign = _foreign_type(msgspec.inspect.type_info(hint))
    except Exception as error:
        raise _no_decoder(hint, str(error)) from error
    if foreign is not None:
        raise _no_decoder(hint, f"{foreign!r} cannot be read from JSON")


def _no_decoder(hint: Any, why: str) -> ConfigError:
    return ConfigError(
        f"No decoder fits the type hint {hint!r}: {why}.",
        hint="Use bytes, str, dict, a dataclass, a TypedDict, a pydantic model, or a decoder of your own with value=.",
    )


def _foreign_type(root: Any) -> type | None:
    """A type inside the hint that msgspec cannot read. It would raise only at the first record."""
    foreign = (info.cls for info in _types_in(root) if isinstance(info, msgspec.inspect.CustomType))
    return next(foreign, None)


def _types_in(root: Any) -> Iterator[Any]:
    """The information of msgspec about a type and all types inside it."""
    seen: set[int] = set()
    found = [root]
    while found:
        info = found.pop()
        if isinstance(info, msgspec.Struct) and id(info) not in seen:
            seen.add(id(info))  # types may refer to themselves
            yield info
            found.extend(getattr(info, name) for name in info.__struct_fields__)
        elif isinstance(info, tuple):
            found.extend(info)


def make_portable(hint: Any) -> None:
    """Delete the cache that msgspec keeps on the classes of a hint, because it cannot be pickled.

    Classes without an importable module, as in a notebook, are pickled as a whole. Existing decoders continue to work,
    and new ones fill the cache again.
    """
    try:
        classes = {getattr(info, "cls", None) for info in _types_in(msgspec.inspect.type_info(hint))}
    except Exception:  # noqa: BLE001 - not a type that msgspec knows, so it has no cache
        return
    for each in classes:
        if isinstance(each, type) and _MSGSPEC_CACHE in vars(each):
            delattr(each, _MSGSPEC_CACHE)


def _pydantic_union(hint: Any) -> Callable[[bytes], Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - imported already, by who declared the models

    try:
        adapter: Any = TypeAdapter(hint)
    except Exception as error:
        raise _no_decoder(hint, str(error)) from error
    validate: Callable[[bytes], Any] = adapter.validate_json
    return validate


def _pydantic_decoder(validate: Callable[[bytes], Any], what: str) -> Callable[[bytes], Any]:
    def decode_model(data: bytes) -> Any:
        if len(data) > _LARGE_BYTES and data.count(b",") >= _MAX_PARTS:
            raise Undecodable(
                f"it has more than {_MAX_PARTS:,} parts, and pydantic would need too much memory to check them: use a "
                "dataclass, which stops at the first error, or a decoder of your own"
            )
        try:
            return validate(data)
        except (ValueError, RecursionError, MemoryError) as error:
            raise Undecodable(_pydantic_reason(error) if data else empty_reason(what)) from error

    return decode_model


def _pydantic_converter(model: Any) -> Callable[[Any], Any]:
    validate = model.model_validate

    def convert(value: Any) -> Any:
        try:
            return None if value is None else validate(value)
        except (ValueError, RecursionError, MemoryError) as error:
            raise Undecodable(_pydantic_reason(error)) from error

    return convert


def _pydantic_reason(error: Any) -> str:
    """The errors in one line; pydantic's text has several lines for each field."""
    if not hasattr(error, "errors"):
        return str(error) or type(error).__name__
    if error.error_count() > _MAX_LISTED_ERRORS:
        return f"it is not a {error.title}: {error.error_count():,} of its parts are wrong"
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{'.'.join(map(str, each['loc'])) or '$'}: {each['msg']}" for each in found[:_MAX_REASONS]]
    return "; ".join([*shown, f"and {len(found) - _MAX_REASONS:,} more"] if len(found) > _MAX_REASONS else shown)


def accepting_null(decode: Callable[[bytes], Any]) -> Decode:
    return lambda data: None if data is None else decode(data)


def refusing_null(decode: Callable[[bytes], Any], what: str) -> Decode:
    def decode_data(data: bytes | None) -> Any:
        if data is None:
            raise Undecodable(null_reason(what))
        return decode(data)

    return decode_data


def null_reason(what: str) -> str:
    kind = " (a tombstone)" if what == "value" else ""
    return f"the {what} is null{kind}; to accept null, write `| None` in the type hint"


def empty_reason(what: str) -> str:
    kind = ", which is not a tombstone" if what == "value" else ""
    return f"the {what} is empty (0 bytes{kind}), and JSON has at least one character"
