"""Decoders and encoders by type hint, and the formats with a schema as declarations."""

from penstock.serde.codec import Codec, CodecOf, Field, Headers, no_codecs
from penstock.serde.decode_by_type import (
    Decode,
    accepting_null,
    converter_for,
    custom_decoder,
    decoder_for,
    empty_reason,
    make_portable,
    null_reason,
    takes_null,
    union_members,
)
from penstock.serde.encode_output import custom_encoder, encode, to_plain
from penstock.serde.formats import Avro, Format, JsonSchema, OrNull, Protobuf, Reference

__all__ = [
    "Avro",
    "Codec",
    "CodecOf",
    "Decode",
    "Field",
    "Format",
    "Headers",
    "JsonSchema",
    "OrNull",
    "Protobuf",
    "Reference",
    "accepting_null",
    "converter_for",
    "custom_decoder",
    "custom_encoder",
    "decoder_for",
    "empty_reason",
    "encode",
    "make_portable",
    "no_codecs",
    "null_reason",
    "takes_null",
    "to_plain",
    "union_members",
]
