"""The base of the codecs of all formats: finds the schema of a value, caches decoders, writes schema ids."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka.schema_registry import Schema, SchemaReference

from penstock.codecs.registry_client import RefusedError, RegistryClient
from penstock.codecs.wire_format import HEADERS, ID_LENGTH, schema_id_of, split_schema_id, written_id
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.core.records.record import Header
from penstock.serde import Field, Format, Headers, Reference

Decode = Callable[[bytes, int], Any]
"""Decodes the value that begins at this position of these bytes."""

_Written = tuple[bytes, tuple[Header, ...]]
"""Bytes, and the headers to write with them."""

T = TypeVar("T")


@dataclass(frozen=True)
class WriterSchema:
    """The schema of one schema id, for Spark, which decodes with its own library.

    ``schema`` is for Avro: the schema as JSON, with the schemas that it refers to put in. ``message_indexes`` is for
    Protobuf: the forms of the message indexes that may be between the schema id and the value.
    """

    schema: str | None = None
    message_indexes: tuple[bytes, ...] = (b"",)


class SchemaCodec(ABC):
    """A codec that caches a decoder for each schema id.

    Threads share it without a lock: operations of a dict are atomic, and a decoder that is made twice does no harm.
    """

    def __init__(self, format_: Format, client: RegistryClient | None, *, field: Field, topic: str | None) -> None:
        self._format = format_
        self._client = client
        self._field = field
        self._topic = topic
        self._header = HEADERS[field]
        self._decoders: dict[bytes, Decode] = {}
        self._bare: Decode | None = None
        self._written_id: _Written | None = None if client is not None else (b"", ())

    @abstractmethod
    def _decoder(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> Decode:
        """Return a decoder of values that were written with this schema."""

    @abstractmethod
    def _writer_schema(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> WriterSchema:
        """Return what Spark needs to decode such values."""

    @abstractmethod
    def _bare_decoder(self) -> Decode:
        """Return a decoder of values without a schema id."""

    @abstractmethod
    def _encoded(self, value: Any) -> bytes: ...

    @abstractmethod
    def _register(self, client: RegistryClient) -> _Written:
        """Get the id of the schema to write with from the registry."""

    def decode(self, data: bytes, headers: Headers) -> Any:
        if self._client is None:
            decode = self._bare = self._bare or self._bare_decoder()
            return decode(data, 0)
        id_bytes, start = split_schema_id(data, headers, self._header)
        return (self._decoders.get(id_bytes) or self._add_decoder(self._client, id_bytes))(data, start)

    def reader(
        self,
        raw_of: Callable[[Any], bytes | None],
        headers_of: Callable[[Any], Headers],
        *,
        null: Callable[[], Any],
        convert: Callable[[Any], Any] | None,
    ) -> Callable[[Any], Any]:
        """Return an inlined form of ``decode``: it runs for every record, and each call costs time."""
        client, decoders, header = self._client, self._decoders, self._header
        add_decoder, decode = self._add_decoder, self.decode

        def read(record: Any) -> Any:
            raw = raw_of(record)
            if raw is None:
                return null()
            if client is None:
                value = decode(raw, None)
            else:
                headers = headers_of(record)
                id_bytes, start = split_schema_id(raw, headers, header) if headers else (raw[:ID_LENGTH], ID_LENGTH)
                value = (decoders.get(id_bytes) or add_decoder(client, id_bytes))(raw, start)
            return value if convert is None else convert(value)

        return read

    def is_known(self, data: bytes, headers: Headers) -> bool:
        return self._client is None or split_schema_id(data, headers, self._header)[0] in self._decoders

    def encode(self, value: Any) -> _Written:
        encoded = self._encoded(value)
        prefix, headers = self._written_id or self._get_written_id()
        return prefix + encoded, headers

    @property
    def can_encode(self) -> bool:
        return self._written_id is not None

    def get_ready(self) -> None:
        self._get_written_id()

    def _get_written_id(self) -> _Written:
        if self._written_id is None and self._client is not None:
            self._written_id = self._register(self._client)
        return self._written_id or (b"", ())

    def _registered_id(self, client: RegistryClient, subject: str, schema: Schema, suffix: bytes = b"") -> _Written:
        registered = client.registered(subject, schema, register=self._format.register)
        return written_id(registered, self._header if self._format.schema_id == "headers" else None, suffix)

    def _subject(self, record_name: str) -> str:
        by_topic = f"{self._topic}-{self._field}"
        return {"topic": by_topic, "record": record_name, "topic-record": f"{self._topic}-{record_name}"}[
            self._format.subject
        ]

    def writer_schema(self, id_bytes: bytes) -> WriterSchema:
        """Return the schema of these id bytes. Raises what decoding such a value would raise."""
        if self._client is None:
            return WriterSchema()
        return self._make_for(self._client, id_bytes, self._writer_schema)

    def schema_ids(self, topic: str) -> Iterator[bytes]:
        """Return the id bytes that values of this topic probably have: of the newest schemas of the topic's subject."""
        if self._client is not None:
            for schema_id in self._client.ids(f"{topic}-{self._field}"):
                yield b"\x00" + schema_id.to_bytes(ID_LENGTH - 1, "big")

    def _add_decoder(self, client: RegistryClient, id_bytes: bytes) -> Decode:
        made = self._make_for(client, id_bytes, self._decoder)
        if len(self._decoders) >= client.capacity:
            self._decoders.clear()
            client.forget()
        self._decoders[id_bytes] = made
        return made

    def _make_for(
        self, client: RegistryClient, id_bytes: bytes, make: Callable[[RegistryClient, Schema, bytes], T]
    ) -> T:
        schema_id = schema_id_of(id_bytes, self._field)
        writer = client.schema(schema_id)
        try:
            return make(client, writer, id_bytes)
        except (Undecodable, DependencyUnavailable):
            raise
        except RefusedError as error:
            raise Undecodable(
                f"the schema {schema_id} refers to one that the registry at {client} does not have"
            ) from error
        except Exception as error:
            raise Undecodable(f"the schema {schema_id} cannot be used: {error}") from error


def as_references(references: tuple[Reference, ...]) -> list[SchemaReference]:
    return [SchemaReference(each.name, each.subject, each.version) for each in references]


def require_type(writer: Schema, wanted: str) -> None:
    found = writer.schema_type or "AVRO"
    if found != wanted:
        raise Undecodable(f"it was written with a schema of type {found}, not {wanted}")
