"""The Protobuf codec."""

import base64
from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaReference
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from penstock.codecs.proto_file import Messages, find_indexes, name_at, read_messages
from penstock.codecs.protobuf_errors import why_not
from penstock.codecs.registry_client import RegistryClient
from penstock.codecs.schema_codec import Decode, SchemaCodec, WriterSchema, require_type
from penstock.codecs.wire_format import ID_LENGTH, id_length
from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Header
from penstock.core.records.varints import VarintError, from_zigzag, read_varint, write_varint, zigzag
from penstock.serde import Field, Headers, Protobuf

PROTOBUF = "PROTOBUF"

# Every Protobuf library has these files, so they need not be in the registry.
_BUILT_IN = ("google/protobuf/", "google/type/", "confluent/")
# Messages inside messages; no schema has more levels.
_DEEPEST = 100


class ProtobufCodec(SchemaCodec):
    """Decodes into the message class of the format. Keeps unknown fields, as Protobuf does."""

    _format: Protobuf

    def __init__(self, format_: Protobuf, client: RegistryClient | None, *, field: Field, topic: str | None) -> None:
        super().__init__(format_, client, field=field, topic=topic)
        self._message: type[Message] = format_.message
        self._descriptor: Descriptor = format_.message.DESCRIPTOR
        self._parse = _parser(format_.message)
        # What is usually in front of a value: its id bytes and message indexes. All of these have one length.
        self._prefixes: set[bytes] = set()
        self._prefix_length = 0

    def _decoder(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> Decode:
        require_type(writer, PROTOBUF)
        messages, wanted, parse = _messages_of(str(writer.schema_str)), _name_within(self._descriptor), self._parse
        indexes = find_indexes(messages, wanted)
        usual = b"" if indexes is None else _write_indexes(indexes)
        # A header with the schema id has the message indexes as well.
        if len(id_bytes) > id_length(id_bytes):
            _require_message(messages, _read_indexes(id_bytes, id_length(id_bytes))[0], wanted)

        begins_usually = ID_LENGTH + len(usual)
        if usual and len(id_bytes) == ID_LENGTH:
            self._remember_prefix(id_bytes + usual, client.capacity)

        def decode(data: bytes, start: int) -> Any:
            if start == 0:
                return parse(data, 0)
            if usual and data.startswith(usual, ID_LENGTH):
                return parse(data, begins_usually)
            indexes, begins = _read_indexes(data, start)
            _require_message(messages, indexes, wanted)
            return parse(data, begins)

        return decode

    def _remember_prefix(self, prefix: bytes, capacity: int) -> None:
        if not self._prefixes:
            self._prefix_length = len(prefix)
        if len(self._prefixes) >= capacity:
            self._prefixes.clear()
        if len(prefix) == self._prefix_length:
            self._prefixes.add(prefix)

    def reader(
        self,
        raw_of: Callable[[Any], bytes | None],
        headers_of: Callable[[Any], Headers],
        *,
        null: Callable[[], Any],
        convert: Callable[[Any], Any] | None,
    ) -> Callable[[Any], Any]:
        usual_read = super().reader(raw_of, headers_of, null=null, convert=convert)
        if self._client is None or convert is not None or _has_required(self._descriptor, set()):
            return usual_read
        prefixes, parse, length = self._prefixes, self._message.FromString, self._prefix_length
        last = b"\xff"  # no prefix begins with this byte

        # Parsing a message takes no longer than a few Python calls. So most prefixes are recognised at once.
        def read(record: Any) -> Any:
            nonlocal last, length
            try:
                raw: Any = raw_of(record)
                rest = raw.removeprefix(last)
                if rest is not raw and not headers_of(record):
                    return parse(rest)
                prefix = raw[:length]
                if prefix in prefixes and not headers_of(record):
                    last = prefix
                    return parse(raw[len(prefix) :])
            except Exception:  # noqa: BLE001, S110 - the usual way handles it, or raises a better error
                pass
            found = usual_read(record)
            length = self._prefix_length
            return found

        return read

    def _writer_schema(self, client: RegistryClient, writer: Schema, id_bytes: bytes) -> WriterSchema:  # noqa: ARG002 - Avro needs it
        require_type(writer, PROTOBUF)
        messages, wanted = _messages_of(str(writer.schema_str)), _name_within(self._descriptor)
        if len(id_bytes) > id_length(id_bytes):
            _require_message(messages, _read_indexes(id_bytes, id_length(id_bytes))[0], wanted)
            return WriterSchema()
        indexes = find_indexes(messages, wanted)
        if indexes is None:
            raise Undecodable(f"its schema has no message {wanted}")
        # The indexes of the first message have a short form and a long one.
        long = b"".join(write_varint(zigzag(number)) for number in (len(indexes), *indexes))
        return WriterSchema(message_indexes=tuple(dict.fromkeys((_write_indexes(indexes), long))))

    def file_set(self) -> bytes:
        """Return the message's file and all files that it imports, in the form of ``protoc --descriptor_set_out``."""
        files: dict[str, FileDescriptor] = {}
        _collect(self._descriptor.file, files)
        protos = []
        for each in files.values():
            protos.append(FileDescriptorProto())
            each.CopyToProto(protos[-1])
        return bytes(FileDescriptorSet(file=protos).SerializeToString())

    def _bare_decoder(self) -> Decode:
        return self._parse

    def _encoded(self, value: Any) -> bytes:
        if not isinstance(value, self._message):
            raise TypeError(f"expected a {self._descriptor.full_name}, got {type(value).__name__}")
        return bytes(value.SerializeToString())

    def _register(self, client: RegistryClient) -> tuple[bytes, tuple[Header, ...]]:
        schema = self._schema_of(client, self._descriptor.file)
        return self._registered_id(
            client, self._subject(self._descriptor.full_name), schema, _write_indexes(_indexes_of(self._descriptor))
        )

    def _schema_of(self, client: RegistryClient, file: FileDescriptor) -> Schema:
        """Return the file as a schema with references to its imports; the subject of an import is its path."""
        references = []
        for imported in file.dependencies:
            if imported.name.startswith(_BUILT_IN):
                continue
            inner = self._schema_of(client, imported)
            registered = client.registered(imported.name, inner, register=self._format.register)
            version = registered.version or client.registered(imported.name, inner, register=False).version
            references.append(SchemaReference(imported.name, imported.name, version))
        return Schema(base64.b64encode(file.serialized_pb).decode(), PROTOBUF, references)


def _collect(file: FileDescriptor, found: dict[str, FileDescriptor]) -> None:
    """Add the file, after the files that it imports."""
    for imported in file.dependencies:
        _collect(imported, found)
    found.setdefault(file.name, file)


def _parser(message: Any) -> Decode:
    read, descriptor, demands = message.FromString, message.DESCRIPTOR, _has_required(message.DESCRIPTOR, set())

    def parse(data: bytes, start: int) -> Any:
        try:
            found = read(data[start:] if start else data)
        except (DecodeError, RecursionError, MemoryError, ValueError) as error:
            raise Undecodable(why_not(data[start:], descriptor, error)) from error
        if demands and not found.IsInitialized():
            missing = ", ".join(f"`$.{each}`" for each in found.FindInitializationErrors())
            raise Undecodable(f"its required fields are missing: {missing}")
        return found

    return parse


def _has_required(descriptor: Descriptor, seen: set[str]) -> bool:
    """Whether it, or a message inside it, has ``required`` fields (proto2)."""
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    inner = [field.message_type for field in descriptor.fields if field.message_type is not None]
    return any(_is_required(field) for field in descriptor.fields) or any(_has_required(each, seen) for each in inner)


def _is_required(field: Any) -> bool:
    # Older versions of the library have only the label.
    is_required = getattr(field, "is_required", None)
    return bool(field.label == field.LABEL_REQUIRED if is_required is None else is_required)


def _require_message(messages: Messages, indexes: list[int], wanted: str) -> None:
    found = name_at(messages, indexes)
    if found is None:
        raise Undecodable(f"it says to be message {indexes} of its schema, which has no such message")
    if found != wanted:
        raise Undecodable(f"it is the message {found}, not {wanted}")


def _messages_of(text: str) -> Messages:
    """Registries return the file as text, or as it was registered: its descriptor in base64."""
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return read_messages(text)
    return [(each.name, _nested(each)) for each in file.message_type]


def _nested(message: Any) -> Messages:
    return [(each.name, _nested(each)) for each in message.nested_type]


def _name_within(descriptor: Descriptor) -> str:
    """Return its name within its file; the package may have another name in the writer's schema."""
    names = [descriptor.name]
    while (descriptor := descriptor.containing_type) is not None:
        names.insert(0, descriptor.name)
    return ".".join(names)


def _indexes_of(descriptor: Descriptor) -> list[int]:
    around = descriptor.containing_type
    if around is None:
        return [list(descriptor.file.message_types_by_name).index(descriptor.name)]
    return [*_indexes_of(around), [each.name for each in around.nested_types].index(descriptor.name)]


def _write_indexes(indexes: list[int]) -> bytes:
    if indexes == [0]:
        return b"\x00"
    return b"".join(write_varint(zigzag(number)) for number in (len(indexes), *indexes))


def _read_indexes(data: bytes, at: int) -> tuple[list[int], int]:
    """Return the message indexes, and the position where the message begins."""
    count, at = _read_index(data, at)
    if not 0 <= count <= _DEEPEST:
        raise Undecodable(f"it says to be {count:,} messages deep in its schema")
    indexes = []
    for _ in range(count):
        index, at = _read_index(data, at)
        indexes.append(index)
    return indexes or [0], at


def _read_index(data: bytes, at: int) -> tuple[int, int]:
    try:
        number, at = read_varint(data, at)
    except VarintError:
        raise Undecodable("it ends before it says which message of its schema it is") from None
    return from_zigzag(number), at
