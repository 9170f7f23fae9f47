"""``Out``: an output that says more than its value."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from penstock.core.records.record import Header
from penstock.errors import HandlerBug


class _Key(Enum):
    OF_RECORD = "the key of its record"


OF_RECORD: Final = _Key.OF_RECORD
"""The default of ``Out.key``: an output keeps the key of the record that the handler got."""

Key = bytes | str | int | UUID | None


class Out:
    """An output with a topic, key, partition, headers or timestamp of its own. Treat it as read-only.

    A handler returns one, or yields any number of them, or of plain values. Two with the same parts are equal.

    Args:
        value: Encoded like a value that a handler returns; None is a tombstone.
        to: The topic; the default is the handler's (first) ``to=``.
        key: Text is encoded as UTF-8, a number or a UUID as its text; None is no key. The default is the record's key.
        partition: The partition; the default is chosen by the key.
        headers: Text is encoded as UTF-8. They replace headers of the same name that ``carry_headers=`` copies.
        timestamp: With a time zone; the default is the time of writing.
    """

    # No dataclass: an encoder would take it for a value of its own, wherever it is inside of another value.
    __slots__ = ("headers", "key", "partition", "timestamp", "to", "value")

    def __init__(
        self,
        value: Any,
        *,
        to: str | None = None,
        key: Key | _Key = OF_RECORD,
        partition: int | None = None,
        headers: Mapping[str, bytes | str] | None = None,
        timestamp: datetime | None = None,
    ) -> None:
        self.value, self.to, self.key, self.partition = value, to, key, partition
        self.headers, self.timestamp = headers, timestamp
        if to is not None and not isinstance(to, str):
            raise _wrong("to", to, 'Use the name of a topic, such as "receipts".')
        if isinstance(key, bool) or not isinstance(key, bytes | str | int | UUID | None | _Key):
            raise _wrong("key", key, "Use text, bytes, a whole number, a UUID, or None for no key.")
        if partition is not None and (isinstance(partition, bool) or not isinstance(partition, int) or partition < 0):
            raise _wrong("partition", partition, "Use a whole number of at least 0.")
        self._check_headers()
        if timestamp is None:
            return
        if not isinstance(timestamp, datetime) or timestamp.tzinfo is None:
            raise _wrong("timestamp", timestamp, "Use a datetime with a time zone, such as datetime.now(UTC).")
        if self.timestamp_ms <= 0:
            raise _wrong("timestamp", timestamp, "Kafka counts from 1970: use a later time.")

    def _parts(self) -> dict[str, Any]:
        """What it says besides its value."""
        parts = {name: getattr(self, name) for name in ("to", "partition", "headers", "timestamp")}
        return {
            **{name: part for name, part in parts.items() if part is not None},
            **({} if self.key is OF_RECORD else {"key": self.key}),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Out):
            return NotImplemented
        return (self.value, self._parts()) == (other.value, other._parts())

    __hash__ = None  # type: ignore[assignment] # its value may be mutable

    def __repr__(self) -> str:
        return f"Out({', '.join([repr(self.value), *(f'{name}={part!r}' for name, part in self._parts().items())])})"

    def _check_headers(self) -> None:
        if self.headers is None:
            return
        if not isinstance(self.headers, Mapping):
            raise _wrong("headers", self.headers, 'Use a dict such as {"type": "receipt"}.')
        for name, value in self.headers.items():
            if not isinstance(name, str) or not isinstance(value, bytes | str):
                raise _wrong("headers", {name: value}, "Names are text, and values are text or bytes.")

    def key_bytes(self, of_record: bytes | None) -> bytes | None:
        """The key to write, if the key of the consumed record is ``of_record``."""
        match self.key:
            case _Key.OF_RECORD:
                return of_record
            case None | bytes() as raw:
                return raw
            case text:
                return str(text).encode()

    @property
    def header_pairs(self) -> tuple[Header, ...]:
        """The headers to write."""
        if not self.headers:
            return ()
        return tuple((name, each.encode() if isinstance(each, str) else each) for name, each in self.headers.items())

    @property
    def timestamp_ms(self) -> int:
        """The timestamp in milliseconds since 1970; 0 if there is none."""
        return 0 if self.timestamp is None else round(self.timestamp.timestamp() * 1000)


def _wrong(name: str, value: object, hint: str) -> HandlerBug:
    return HandlerBug(f"Out({name}={value!r}) does not work.", hint=hint)
