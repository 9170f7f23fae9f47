"""The wire format of Confluent's serializers: which schema a value was written with.

In front of the value stand a zero byte and the schema's id in four. Or the value is bare, and a header holds that, or a
one and the schema's GUID in sixteen bytes. With Protobuf, the place of the message in its schema follows.
"""

from typing import TYPE_CHECKING
from uuid import UUID

from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Header
from penstock.core.text.plurals import counted
from penstock.serde import Field, Headers

if TYPE_CHECKING:  # it needs what the extras bring
    from confluent_kafka.schema_registry import RegisteredSchema

ID_LENGTH = 5
_GUID_LENGTH = 17
_ID, _GUID = 0, 1
HEADERS: dict[Field, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}


def stamp_in(data: bytes, headers: Headers, header: str) -> tuple[bytes, int]:
    """What says the schema, as it stands there, and where the value begins. The header counts, where there is one."""
    if headers:
        for name, stamp in headers:
            if name == header and stamp is not None:
                return stamp, 0
    return data[:ID_LENGTH], ID_LENGTH


def schema_id_of(stamp: bytes, what: str) -> int | str:
    """The id or the GUID that a stamp holds."""
    if not stamp:
        raise Undecodable(f"the {what} is empty: it was not written with a schema registry")
    if stamp[0] == _ID and len(stamp) >= ID_LENGTH:
        return int.from_bytes(stamp[1:ID_LENGTH], "big")
    if stamp[0] == _GUID and len(stamp) >= _GUID_LENGTH:
        return str(UUID(bytes=stamp[1:_GUID_LENGTH]))
    if stamp[0] == _ID:
        raise Undecodable(f"the {what} ends inside of its schema id, after {counted(len(stamp), 'byte')}")
    raise Undecodable(
        f"the {what} begins with the byte 0x{stamp[0]:02x}, not 0x00: it was not written with a schema registry"
    )


def stamp_length(stamp: bytes) -> int:
    """Where in a stamp that holds an id or a GUID the rest begins."""
    return ID_LENGTH if stamp[0] == _ID else _GUID_LENGTH


def stamped(
    registered: "RegisteredSchema", header: str | None, suffix: bytes = b""
) -> tuple[bytes, tuple[Header, ...]]:
    """What goes in front of a value, and which headers go with it."""
    prefix = bytes([_ID]) + int(registered.schema_id or 0).to_bytes(4, "big")
    if header is None:
        return prefix + suffix, ()
    # A GUID means the same in every registry, an id only in one; not all registries have GUIDs.
    stamp = bytes([_GUID]) + UUID(registered.guid).bytes if registered.guid else prefix
    return b"", ((header, stamp + suffix),)
