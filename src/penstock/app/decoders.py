"""Decoders from the options ``value``, ``key`` and ``headers`` of a handler, or from its type hints."""

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
    """The decoder that ``how`` declares, which is no format here; without ``how``, the one of the type hint."""
    if how is None:
        return decoder_for(bytes if hint is None else hint, what=what)
    if isinstance(how, type) or get_origin(how) is not None or how is Any:
        return decoder_for(how, what=what)
    function = getattr(how, "decode", how)
    if isinstance(how, OrNull):
        raise ConfigError(
            f"{what}={type(how.format).__name__}(...) | None is for pipelines.",
            hint="For a handler that takes tombstones, write `| None` in the type hint of its parameter.",
        )
    if not callable(function):
        raise ConfigError(f"{what}={how!r} is not a decoder.", hint=_DECODERS)
    return custom_decoder(function, hint, what=what)


def converted_hint(format_: Format, hint: Any) -> Any:
    """The type to convert a decoded value to: none if it is an object already, such as a Protobuf message."""
    return Any if hint is None or format_.gives_objects else hint


def header_decoders(how: Any, hint: Any) -> tuple[Mapping[str, Decode], Decode]:
    """Decoders by header name, and one for all other headers. A header without a value is None, whatever its type."""
    if hint not in (None, dict, Any) and get_origin(hint) not in (dict, Mapping):
        raise ConfigError(
            f"The type hint of headers is {hint!r}.", hint="Write headers: dict[str, str], or leave the hint out."
        )
    inner = get_args(hint)[1] if get_args(hint) else None
    if isinstance(how, Mapping):
        return {name: _header_decoder(each, None) for name, each in how.items()}, _header_decoder(None, None)
    return {}, _header_decoder(how, None if inner is Any else inner)


def _header_decoder(how: Any, hint: Any) -> Decode:
    if isinstance(how, Format):
        raise ConfigError("headers= takes no format with a schema.", hint="Use a type, or a function of bytes.")
    return accepting_null(decoder(how, hint, "value"))


def check_decoders(
    signature: Signature, *, value: Any, key: Any, headers: Any, has_outputs: bool, to_value: Any, in_batches: bool
) -> None:
    """Refuse decoders and encoders that cannot work, as far as that shows without importing a library."""
    for part, how in (("value", value), ("key", key), ("headers", headers)):
        if how is not None and part not in signature.parts:
            name = "keys" if part == "key" and in_batches else part
            raise ConfigError(
                f"{part}= decodes a parameter that it does not take.",
                hint=f"Add a parameter {name}, or leave {part}= out.",
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
    if not has_outputs:
        raise ConfigError("to_value= has no effect without to=.", hint="Name an output topic with to=...")
    if not isinstance(to_value, Format):
        custom_encoder(to_value)
