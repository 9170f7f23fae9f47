"""What the codecs of all formats share: which schema a value is of, what is remembered, what is written."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka.schema_registry import Schema, SchemaReference

from penstock.codecs.registry_client import RefusedError, RegistryClient
from penstock.codecs.wire_format import HEADERS, ID_LENGTH, schema_id_of, stamp_in, stamped
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.core.records.record import Header
from penstock.serde import Field, Format, Headers, Reference

Decode = Callable[[bytes, int], Any]
"""Decodes the value that begins at a place of these bytes."""

_Written = tuple[bytes, tuple[Header, ...]]
T = TypeVar("T")


@dataclass(frozen=True)
class Writer:
    """What a stamp stands for, for those who decode by another library.

    ``schema`` is Avro's own, with all that it refers to inside of it. ``leads`` may stand between stamp and value.
    """

    schema: str | None = None
    leads: tuple[bytes, ...] = (b"",)


class SchemaCodec(ABC):
    """A codec that remembers a decoder for each schema that it has met.

    Threads share it without a lock: a dict's own operations are atomic, and a decoder made twice does no harm.
    """

    def __init__(self, format_: Format, client: RegistryClient | None, *, field: Field, topic: str | None) -> None:
        self._format = format_
        self._client = client
        self._field = field
        self._topic = topic
        self._header = HEADERS[field]
        self._decoders: dict[bytes, Decode] = {}
        self._bare: Decode | None = None
        self._stamp: _Written | None = None if client is not None else (b"", ())

    @abstractmethod
    def _decoder(self, client: RegistryClient, writer: Schema, stamp: bytes) -> Decode:
        """How to decode what was written with this schema."""

    @abstractmethod
    def _writer(self, client: RegistryClient, writer: Schema, stamp: bytes) -> Writer:
        """The same for another library."""

    @abstractmethod
    def _bare_decoder(self) -> Decode:
        """How to decode bytes without a schema id."""

    @abstractmethod
    def _encoded(self, value: Any) -> bytes: ...

    @abstractmethod
    def _register(self, client: RegistryClient) -> _Written:
        """Ask the registry for what says the schema that is written with."""

    def decode(self, data: bytes, headers: Headers) -> Any:
        if self._client is None:
            decode = self._bare = self._bare or self._bare_decoder()
            return decode(data, 0)
        stamp, start = stamp_in(data, headers, self._header)
        return (self._decoders.get(stamp) or self._meet(self._client, stamp))(data, start)

    def reader(
        self,
        raw_of: Callable[[Any], bytes | None],
        headers_of: Callable[[Any], Headers],
        *,
        null: Callable[[], Any],
        convert: Callable[[Any], Any] | None,
    ) -> Callable[[Any], Any]:
        """What ``decode`` does, written out: this runs for every record, and each call inside of it is felt."""
        client, decoders, header, meet, decode = self._client, self._decoders, self._header, self._meet, self.decode

        def read(record: Any) -> Any:
            raw = raw_of(record)
            if raw is None:
                return null()
            if client is None:
                value = decode(raw, None)
            else:
                headers = headers_of(record)
                stamp, start = stamp_in(raw, headers, header) if headers else (raw[:ID_LENGTH], ID_LENGTH)
                value = (decoders.get(stamp) or meet(client, stamp))(raw, start)
            return value if convert is None else convert(value)

        return read

    def is_known(self, data: bytes, headers: Headers) -> bool:
        return self._client is None or stamp_in(data, headers, self._header)[0] in self._decoders

    def encode(self, value: Any) -> _Written:
        encoded = self._encoded(value)
        prefix, headers = self._stamp or self._get_stamp()
        return prefix + encoded, headers

    @property
    def can_encode(self) -> bool:
        return self._stamp is not None

    def get_ready(self) -> None:
        self._get_stamp()

    def _get_stamp(self) -> _Written:
        if self._stamp is None and self._client is not None:
            self._stamp = self._register(self._client)
        return self._stamp or (b"", ())

    def _stamped(self, client: RegistryClient, subject: str, schema: Schema, suffix: bytes = b"") -> _Written:
        registered = client.registered(subject, schema, register=self._format.register)
        return stamped(registered, self._header if self._format.schema_id == "headers" else None, suffix)

    def _subject(self, record_name: str) -> str:
        by_topic = f"{self._topic}-{self._field}"
        return {"topic": by_topic, "record": record_name, "topic-record": f"{self._topic}-{record_name}"}[
            self._format.subject
        ]

    def writer(self, stamp: bytes) -> Writer:
        """What was written with this stamp. Raises what decoding such a value would raise."""
        if self._client is None:
            return Writer()
        return self._made_for(self._client, stamp, self._writer)

    def stamps(self, topic: str) -> Iterator[bytes]:
        """Those that values of this topic may well have, by what the registry has under the topic's subject."""
        if self._client is not None:
            for schema_id in self._client.ids(f"{topic}-{self._field}"):
                yield b"\x00" + schema_id.to_bytes(ID_LENGTH - 1, "big")

    def _meet(self, client: RegistryClient, stamp: bytes) -> Decode:
        made = self._made_for(client, stamp, self._decoder)
        if len(self._decoders) >= client.capacity:
            self._decoders.clear()
            client.forget()
        self._decoders[stamp] = made
        return made

    def _made_for(self, client: RegistryClient, stamp: bytes, make: Callable[[RegistryClient, Schema, bytes], T]) -> T:
        schema_id = schema_id_of(stamp, self._field)
        writer = client.schema(schema_id)
        try:
            return make(client, writer, stamp)
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
