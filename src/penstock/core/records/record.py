"""A Kafka record as a handler gets it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from penstock.core.records.origin import Origin, origin_of
from penstock.errors import HandlerBug

Header = tuple[str, bytes | None]
TopicPartition = tuple[str, int]


class Record:
    """One record as Kafka delivered it, with unchanged bytes. Treat it as read-only. Records compare by value.

    It is not a frozen dataclass, for speed: one is built for every record. ``timestamp_ms`` is the record's timestamp
    in milliseconds since 1970; -1 if it has none.
    """

    __slots__ = (
        "_on_ack", "attempt", "headers", "key", "offset", "partition", "timestamp_ms", "topic", "value"
    )  # fmt: skip

    def __init__(  # noqa: PLR0917 - positional arguments are faster, and they are in Kafka's order
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...] = (),
        timestamp_ms: int = -1,
        attempt: int = 1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp_ms = timestamp_ms
        self.attempt = attempt
        self._on_ack: Callable[[], None] | None = None

    @property
    def timestamp(self) -> datetime | None:
        """The record's timestamp in UTC; None if it has none."""
        return None if self.timestamp_ms < 0 else datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    @property
    def origin(self) -> Origin:
        """The source of a record that comes from a retry topic; for other records, their own topic and offset."""
        return origin_of(Origin(self.topic, self.partition, self.offset, self.timestamp_ms), self.headers)

    def ack(self) -> None:
        """With ``commit="manual"``: finish this record. Any thread may call it, at any time, and more than once."""
        if self._on_ack is None:
            raise HandlerBug(
                f"{self} cannot be acknowledged because Penstock finishes it when its handler returns.",
                hint='Remove the call of ack(), or declare the handler with commit="manual".',
            )
        self._on_ack()

    def acknowledged_by(self, on_ack: Callable[[], None]) -> "Record":
        """Set the function that ``ack`` calls; the engine does this."""
        self._on_ack = on_ack
        return self

    def _fields(self) -> tuple[Any, ...]:
        where = (self.topic, self.partition, self.offset)
        return (*where, self.key, self.value, self.headers, self.timestamp_ms, self.attempt)

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Record) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # `attempt` may differ between two objects for the same record

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, self._fields()

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    def __repr__(self) -> str:
        names = ("topic", "partition", "offset", "key", "value", "headers", "timestamp_ms", "attempt")
        return f"Record({', '.join(f'{n}={v!r}' for n, v in zip(names, self._fields(), strict=True))})"
