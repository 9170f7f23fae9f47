"""What a handler was declared with, or the hints of its parameters, as decoders."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from penstock.app.signature import Signature
from penstock.errors import ConfigError
from penstock.serde import (
    Decode,
    Format,
    OrNull,
    accepting_null,
    converter_for,
    custom_decoder,
    custom_encoder,
    decoder_for,
)

_DECODERS = "Use a type, Avro(...), JsonSchema(...), Protobuf(...), an object with decode, or a function of bytes."


def decoder(how: Any, hint: Any, what: str) -> Decode:
    """By ``how``, unless that is a format; by the hint of the parameter where it is nothing."""
    if how is None:
        return decoder_for(bytes if hint is None else hint, what=what)
    if isinstance(how, type) or get_origin(how) is not None or how is Any:
        return decoder_for(how, what=what)
    function = getattr(how, "decode", how)
    if isinstance(how, OrNull):
        raise ConfigError(
            f"{what}={type(how.format).__name__}(...) | None is for pipelines.",
            hint="A handler that takes tombstones has `| None` in the hint of its parameter.",
        )
    if not callable(function):
        raise ConfigError(f"{what}={how!r} does not decode.", hint=_DECODERS)
    return custom_decoder(function, hint, what=what)


def converted_hint(format_: Format, hint: Any) -> Any:
    """What a decoded value is converted to: nothing where it is an object already, as Protobuf's messages are."""
    return Any if hint is None or format_.gives_objects else hint


def header_decoders(how: Any, hint: Any) -> tuple[Mapping[str, Decode], Decode]:
    """Decoders for single headers, and one for all others. A header without a value is None, whatever its type."""
    if hint not in (None, dict, Any) and get_origin(hint) not in (dict, Mapping):
        raise ConfigError(f"headers is a {hint!r}.", hint="Write headers: dict[str, str], or leave the hint out.")
    inner = get_args(hint)[1] if get_args(hint) else None
    if isinstance(how, Mapping):
        return {name: _header_decoder(each, None) for name, each in how.items()}, _header_decoder(None, None)
    return {}, _header_decoder(how, None if inner is Any else inner)


def _header_decoder(how: Any, hint: Any) -> Decode:
    if isinstance(how, Format):
        raise ConfigError("headers= has no use for a format with a schema.", hint="Use a type, or a function of bytes.")
    return accepting_null(decoder(how, hint, "value"))


def check_decoders(
    signature: Signature, *, value: Any, key: Any, headers: Any, to: str | None, to_value: Any, in_batches: bool
) -> None:
    """Refuse what cannot decode or encode, as far as that can be told without any library."""
    for part, how in (("value", value), ("key", key), ("headers", headers)):
        if how is not None and part not in signature.parts:
            name = "keys" if part == "key" and in_batches else part
            raise ConfigError(
                f"{part}= says how to decode what it does not take.", hint=f"Add a parameter {name}, or leave it out."
            )
        if part not in signature.hints:
            continue
        hint = signature.hints[part]
        if part == "headers":
            header_decoders(how, hint)
        elif isinstance(how, Format):
            converter_for(converted_hint(how, hint))
        else:
            decoder(how, hint, part)
    if to_value is None:
        return
    if to is None:
        raise ConfigError("to_value= says how to encode what goes nowhere.", hint="Name an output topic with to=...")
    if not isinstance(to_value, Format):
        custom_encoder(to_value)
