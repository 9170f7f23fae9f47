"""Confluent's wire format: how a record says which schema its value (or key) was written with.

The schema id is either in front of the value or in a header. Its bytes are 0x00 and an id of four bytes, or, in headers
only, 0x01 and a GUID of sixteen bytes. With Protobuf, the message indexes follow: they say which message of the schema
the value is. In this package, ``id_bytes`` are those bytes as they are in the record.
"""

from typing import TYPE_CHECKING
from uuid import UUID

from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Header
from penstock.core.text.plurals import counted
from penstock.serde import Field, Headers

if TYPE_CHECKING:  # importing it needs the libraries of the extras
    from confluent_kafka.schema_registry import RegisteredSchema

ID_LENGTH = 5
_GUID_LENGTH = 17
_ID, _GUID = 0, 1
HEADERS: dict[Field, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}


def split_schema_id(data: bytes, headers: Headers, header: str) -> tuple[bytes, int]:
    """Return the bytes of the schema id, and the position where the value begins. A header wins over the value."""
    if headers:
        for name, content in headers:
            if name == header and content is not None:
                return content, 0
    return data[:ID_LENGTH], ID_LENGTH


def schema_id_of(id_bytes: bytes, what: str) -> int | str:
    """Return the id (an int) or the GUID (a str)."""
    if not id_bytes:
        raise Undecodable(f"the {what} is empty: it was not written with a schema registry")
    if id_bytes[0] == _ID and len(id_bytes) >= ID_LENGTH:
        return int.from_bytes(id_bytes[1:ID_LENGTH], "big")
    if id_bytes[0] == _GUID and len(id_bytes) >= _GUID_LENGTH:
        return str(UUID(bytes=id_bytes[1:_GUID_LENGTH]))
    if id_bytes[0] == _ID:
        raise Undecodable(f"the {what} ends inside its schema id, after {counted(len(id_bytes), 'byte')}")
    raise Undecodable(
        f"the {what} begins with the byte 0x{id_bytes[0]:02x}, not 0x00: it was not written with a schema registry"
    )


def id_length(id_bytes: bytes) -> int:
    """Return how many bytes the id or GUID takes; Protobuf's message indexes may follow."""
    return ID_LENGTH if id_bytes[0] == _ID else _GUID_LENGTH


def written_id(
    registered: "RegisteredSchema", header: str | None, suffix: bytes = b""
) -> tuple[bytes, tuple[Header, ...]]:
    """Return the bytes to write in front of a value, and the headers to write with it."""
    prefix = bytes([_ID]) + int(registered.schema_id or 0).to_bytes(4, "big")
    if header is None:
        return prefix + suffix, ()
    # A GUID means the same in every registry, an id only in one; not all registries have GUIDs.
    id_bytes = bytes([_GUID]) + UUID(registered.guid).bytes if registered.guid else prefix
    return b"", ((header, id_bytes + suffix),)
