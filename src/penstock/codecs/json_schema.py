"""The JSON Schema codec, with msgspec and jsonschema."""

import json
from typing import Any

import msgspec
from confluent_kafka.schema_registry import Schema
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from penstock.codecs.registry_client import RegistryClient
from penstock.codecs.schema_codec import Decode, SchemaCodec, WriterSchema, as_references, require_type
from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Header
from penstock.errors import ConfigError
from penstock.serde import Field, JsonSchema, empty_reason

JSON = "JSON"

# In characters. An error quotes the wrong part of a value, which may be all of a large value.
_SHOWN = 200


class JsonSchemaCodec(SchemaCodec):
    _format: JsonSchema

    def __init__(self, format_: JsonSchema, client: RegistryClient | None, *, field: Field, topic: str | None) -> None:
        super().__init__(format_, client, field=field, topic=topic)
        self._text = None if format_.schema is None else str(format_.schema)
        self._validator: Validator | None = None
        if self._text is not None and not format_.references:
            self._validator = _checked(self._text)
        if topic is not None:
            self._title = _title(self._text, format_)

    def _own(self) -> Validator | None:
        """Return the declared schema's validator. Fetches the schemas that it refers to when it is first needed."""
        text, client = self._text, self._client
        if self._validator is None and text is not None and client is not None:
            self._validator = client.declared("JsonSchema", lambda: _validator(self._written(text), client))
        return self._validator

    def _written(self, text: str) -> Schema:
        return Schema(text, JSON, as_references(self._format.references))

    def _decoder(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> Decode:  # noqa: ARG002 - Protobuf needs it
        require_type(writer, JSON)
        return _decode_by(self._own() or _validator(writer, client))

    def _writer_schema(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> WriterSchema:  # noqa: ARG002 - Protobuf needs it
        require_type(writer, JSON)
        return WriterSchema()

    def _bare_decoder(self) -> Decode:
        return _decode_by(self._own())

    def _encoded(self, value: Any) -> bytes:
        dump = getattr(value, "model_dump", None)
        plain = dump(mode="json") if dump is not None else msgspec.to_builtins(value, str_keys=True)
        validator = self._own()
        fault = None if validator is None else _fault(validator, plain)
        if fault is not None:
            raise ValueError(fault)
        return msgspec.json.encode(plain)

    def _register(self, client: RegistryClient) -> tuple[bytes, tuple[Header, ...]]:
        return self._registered_id(client, self._subject(self._title), self._written(str(self._text)))


def _title(text: str | None, format_: JsonSchema) -> str:
    """Return the title of the schema, which may be part of the subject."""
    if text is None:
        raise ConfigError("JsonSchema() has no schema to write with.", hint="Write to_value=JsonSchema(schema).")
    content = json.loads(text)
    title = content.get("title") if isinstance(content, dict) else None
    if title is None and format_.subject != "topic":
        raise ConfigError(
            f'JsonSchema: subject="{format_.subject}" needs the title of the schema, and the schema has none.',
            hint='Give the schema a "title".',
        )
    return str(title)


def _decode_by(validator: Validator | None) -> Decode:
    parse = msgspec.json.Decoder().decode

    def decode(data: bytes, start: int) -> Any:
        try:
            value = parse(memoryview(data)[start:] if start else data)
            fault = None if validator is None else _fault(validator, value)
        except RecursionError as error:
            raise Undecodable("it is nested too deeply") from error
        except Exception as error:
            reason = (str(error) or type(error).__name__) if len(data) > start else empty_reason("value")
            raise Undecodable(reason) from error
        if fault is not None:
            raise Undecodable(fault)
        return value

    return decode


def _fault(validator: Validator, value: Any) -> str | None:
    """Return what is wrong and where. Only the first fault: a large value may have millions."""
    first = next(validator.iter_errors(value), None)
    if first is None:
        return None
    closest = best_match([first]) or first
    return f"{closest.message[:_SHOWN]} - at `{closest.json_path}`"


def _checked(text: str) -> Validator:
    try:
        return _validator_of(json.loads(text), Registry())
    except SchemaError as error:
        raise ConfigError(
            f"JsonSchema: the schema is not valid: {error.message[:_SHOWN]} - at {error.json_path}.",
            hint="See https://json-schema.org for what a schema is made of.",
        ) from error


def _validator(schema: Schema, client: RegistryClient) -> Validator:
    return _validator_of(json.loads(str(schema.schema_str)), _referred(schema, client))


def _validator_of(content: Any, registry: "Registry[Any]") -> Validator:
    kind = validator_for(content)
    kind.check_schema(content)
    return kind(content, registry=registry)


def _referred(schema: Schema, client: RegistryClient) -> "Registry[Any]":
    """Fetch all schemas that a schema refers to, by name. Fetches nothing else, wherever a ``$ref`` points."""
    found: Registry[Any] = Registry()
    seen = set()
    open_references = list(schema.references or ())
    while open_references:
        reference = open_references.pop()
        if reference.name in seen:
            continue
        seen.add(reference.name)
        inner = client.version(str(reference.subject), int(reference.version or 0))
        content = json.loads(str(inner.schema_str))
        found = found.with_resource(str(reference.name), Resource.from_contents(content, default_specification=DRAFT7))
        open_references += inner.references or ()
    return found
