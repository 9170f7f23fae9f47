"""What a handler gets to know about one Kafka record."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from penstock.core.records.origin import Origin, origin_of
from penstock.errors import HandlerBug

Header = tuple[str, bytes | None]
TopicPartition = tuple[str, int]


class Record:
    """One record as it came from Kafka; its bytes are never changed. Equal records are equal by value.

    It is written by hand, and not frozen, because one is built for each record that flows; treat it as read-only.
    ``timestamp_ms`` is when it was written, in milliseconds since 1970; -1 if the broker does not know.
    """

    __slots__ = (
        "_on_ack", "attempt", "headers", "key", "offset", "partition", "timestamp_ms", "topic", "value"
    )  # fmt: skip

    def __init__(  # noqa: PLR0917 - by position they cost less, and they come in Kafka's own order
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
        """When it was written, in UTC, if the broker knows."""
        return None if self.timestamp_ms < 0 else datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    @property
    def origin(self) -> Origin:
        """Where it was first: the source of a record that comes back from a retry topic, else its own place."""
        return origin_of(Origin(self.topic, self.partition, self.offset, self.timestamp_ms), self.headers)

    def ack(self) -> None:
        """With ``commit="manual"``: this record is finished. From any thread, at any time; twice is fine."""
        if self._on_ack is None:
            raise HandlerBug(
                f"{self} cannot be acknowledged: it is finished when its handler returns.",
                hint='To say yourself when a record is finished, declare its handler with commit="manual".',
            )
        self._on_ack()

    def acknowledged_by(self, on_ack: Callable[[], None]) -> "Record":
        """The engine's side of ``ack``."""
        self._on_ack = on_ack
        return self

    def _fields(self) -> tuple[Any, ...]:
        where = (self.topic, self.partition, self.offset)
        return (*where, self.key, self.value, self.headers, self.timestamp_ms, self.attempt)

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Record) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # as its attempt may differ while it is the same record

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, self._fields()

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    def __repr__(self) -> str:
        names = ("topic", "partition", "offset", "key", "value", "headers", "timestamp_ms", "attempt")
        return f"Record({', '.join(f'{n}={v!r}' for n, v in zip(names, self._fields(), strict=True))})"
