"""The Avro codec, with fastavro."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from confluent_kafka.schema_registry import Schema
from fastavro import schemaless_reader, schemaless_writer
from fastavro.repository import AbstractSchemaRepository
from fastavro.schema import SchemaParseException, UnknownType, load_schema, parse_schema
from fastavro.types import Schema as Parsed

from penstock.codecs.avro_errors import refuse_deep, refuse_unbounded, why_not, why_unwritable
from penstock.codecs.avro_schemas import as_json, is_recursive, names_of
from penstock.codecs.registry_client import RegistryClient
from penstock.codecs.schema_codec import Decode, SchemaCodec, WriterSchema, as_references, require_type
from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Header
from penstock.errors import ConfigError
from penstock.serde import Avro, Field, to_plain

AVRO = "AVRO"

# fastavro's reader does not limit its stack: a deeply nested value crashes the process. A value of up to so many bytes
# cannot be nested deeply enough.
_SAFE_LENGTH = 1000


class AvroCodec(SchemaCodec):
    _format: Avro

    def __init__(self, format_: Avro, client: RegistryClient | None, *, field: Field, topic: str | None) -> None:
        super().__init__(format_, client, field=field, topic=topic)
        self._text = None if format_.schema is None else str(format_.schema)
        self._schema: Parsed | None = None
        if self._text is not None and not format_.references:
            self._schema = _checked(self._text)
        if self._schema is None and topic is not None and self._text is None:
            raise ConfigError("Avro() has no schema to write with.", hint="Write to_value=Avro(schema).")

    def own_schema(self) -> Parsed:
        """Return the schema to write with."""
        schema = self._own()
        if schema is None:
            raise ConfigError("Avro() has no schema to write with.", hint="Name one.")
        return schema

    def _own(self) -> Parsed | None:
        """Return the declared schema. Fetches the schemas that it refers to when it is first needed."""
        text, client = self._text, self._client
        if self._schema is None and text is not None and client is not None:
            schema = Schema(text, AVRO, as_references(self._format.references))
            self._schema = client.declared("Avro", lambda: _parsed(text, _referred(schema, client)))
        return self._schema

    def _decoder(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> Decode:  # noqa: ARG002 - Protobuf needs it
        require_type(writer, AVRO)
        return _decode_by(_parsed(str(writer.schema_str), _referred(writer, client)), self._own())

    def _writer_schema(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> WriterSchema:  # noqa: ARG002 - Protobuf needs it
        require_type(writer, AVRO)
        parsed = _parsed(str(writer.schema_str), _referred(writer, client))
        refuse_unbounded(parsed)
        if is_recursive(parsed):
            raise Undecodable("its schema refers to itself, for which Spark has no columns: read it in a handler")
        return WriterSchema(as_json(parsed))

    def reader_schema(self) -> str:
        """Return the declared schema as JSON, with the schemas that it refers to put in."""
        schema = self._own()
        if is_recursive(schema):
            raise ConfigError(
                "Avro: the schema refers to itself, for which Spark has no columns.", hint="Read it in a handler."
            )
        return as_json(schema)

    def _bare_decoder(self) -> Decode:
        return _decode_by(self._own(), None)

    def _encoded(self, value: Any) -> bytes:
        schema = self._own()
        plain = value if isinstance(value, dict) else to_plain(value)
        if _is_bytes(schema):
            return bytes(plain)
        stream = BytesIO()
        try:
            schemaless_writer(stream, schema, plain)  # type: ignore[arg-type] # __init__ refuses to encode without a schema
        except Exception as error:
            raise ValueError(why_unwritable(plain, schema, error)) from error
        return stream.getvalue()

    def _register(self, client: RegistryClient) -> tuple[bytes, tuple[Header, ...]]:
        schema = self._own()
        name = str(schema["name"]) if isinstance(schema, Mapping) and "name" in schema else str(schema)
        written = Schema(str(self._text), AVRO, as_references(self._format.references))
        return self._registered_id(client, self._subject(name), written)


def _decode_by(writer: Any, reader: Any) -> Decode:
    if _is_bytes(writer):
        return lambda data, start: data[start:]
    refuse_unbounded(writer)
    recursive, reader = is_recursive(writer), None if reader == writer else reader

    def decode(data: bytes, start: int) -> Any:
        if recursive and len(data) > _SAFE_LENGTH:
            refuse_deep(data, start, writer)
        stream = BytesIO(data)
        if start:
            stream.seek(start)
        try:
            value = schemaless_reader(stream, writer, reader, False)  # noqa: FBT003 - by position it is faster
        except Exception as error:
            raise Undecodable(why_not(data, start, writer, reader, error)) from error
        if stream.tell() != len(data):
            left = len(data) - stream.tell()
            raise Undecodable(f"{left:,} of its {len(data):,} bytes are left over: it was written with another schema")
        return value

    return decode


def _is_bytes(schema: Any) -> bool:
    """Whether values are plain bytes: Confluent's serializers write no length in front of those, unlike Avro."""
    return schema == "bytes" or (isinstance(schema, Mapping) and schema.get("type") == "bytes")


def _checked(text: str) -> Parsed:
    try:
        return _parsed(text, {})
    except (SchemaParseException, UnknownType, TypeError, ValueError, KeyError, AttributeError) as error:
        reason = f"it does not know the type {error}" if isinstance(error, UnknownType) else str(error)
        raise ConfigError(
            f"Avro: the schema cannot be used: {reason}.",
            hint="Types of other schemas are named with references=(Reference(name, subject, version), ...).",
        ) from error


class _Repository(AbstractSchemaRepository):
    """Gives fastavro the schemas that a schema refers to."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def load(self, name: str) -> Any:
        found = self._schemas.get(name)
        if found is None:
            raise SchemaParseException(f"it refers to {name}, which is not known")
        return found


def _parsed(text: str, referred: Mapping[str, Any]) -> Parsed:
    if not referred:
        return parse_schema(json.loads(text))
    return load_schema("$root", repo=_Repository({**referred, "$root": json.loads(text)}))


def _referred(schema: Schema, client: RegistryClient) -> dict[str, Any]:
    """Fetch all schemas that a schema refers to, by name; each once."""
    found: dict[str, Any] = {}
    open_references = list(schema.references or ())
    while open_references:
        reference = open_references.pop()
        if reference.name in found:
            continue
        inner = client.version(str(reference.subject), int(reference.version or 0))
        content = found[str(reference.name)] = json.loads(str(inner.schema_str))
        found.update(dict.fromkeys(names_of(content), content))
        open_references += inner.references or ()
    return found
