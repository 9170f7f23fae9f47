"""``Out``: an output that says more than its value."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from penstock.core.records.record import Header
from penstock.errors import HandlerBug


class _Key(Enum):
    OF_RECORD = "the key of its record"

    def __repr__(self) -> str:
        return self.value


OF_RECORD: Final = _Key.OF_RECORD
"""The default of ``Out.key``: an output keeps the key of the record that the handler got."""

Key = bytes | str | int | UUID | None


@dataclass(frozen=True, slots=True)
class Out:
    """An output with a topic, key, partition, headers or timestamp of its own.

    A handler returns one, or yields any number of them, or of plain values.

    Args:
        value: Encoded like a value that a handler returns; None is a tombstone.
        to: The topic; the default is the handler's (first) ``to=``.
        key: Text is encoded as UTF-8, a number or a UUID as its text; None is no key. The default is the record's key.
        partition: The partition; the default is chosen by the key.
        headers: Text is encoded as UTF-8. They replace headers of the same name that ``carry_headers=`` carries over.
        timestamp: With a time zone; the default is the time of writing.
    """

    value: Any
    _: KW_ONLY
    to: str | None = None
    key: Key | _Key = OF_RECORD
    partition: int | None = None
    headers: Mapping[str, bytes | str] | None = None
    timestamp: datetime | None = None

    def __post_init__(self) -> None:
        if self.to is not None and not isinstance(self.to, str):
            raise _wrong("to", self.to, 'Use the name of a topic, such as "receipts".')
        if isinstance(self.key, bool) or not isinstance(self.key, bytes | str | int | UUID | None | _Key):
            raise _wrong("key", self.key, "Use text, bytes, a whole number, a UUID, or None for no key.")
        if self.partition is not None and (
            isinstance(self.partition, bool) or not isinstance(self.partition, int) or self.partition < 0
        ):
            raise _wrong("partition", self.partition, "Use a whole number of at least 0.")
        self._check_headers()
        if self.timestamp is None:
            return
        if not isinstance(self.timestamp, datetime) or self.timestamp.tzinfo is None:
            raise _wrong("timestamp", self.timestamp, "Use a datetime with a time zone, such as datetime.now(UTC).")
        if self.timestamp_ms <= 0:
            raise _wrong("timestamp", self.timestamp, "Kafka counts from 1970: use a later time.")

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
