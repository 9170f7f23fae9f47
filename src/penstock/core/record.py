"""What a handler gets to know about one Kafka record."""

from dataclasses import dataclass
from datetime import UTC, datetime

Header = tuple[str, bytes | None]
TopicPartition = tuple[str, int]


@dataclass(slots=True)
class Record:
    """One record as it came from Kafka; its bytes are never changed.

    Equal records are equal by value. It is not frozen only because building frozen objects costs three times as
    much, and one is built for each record that flows; treat it as read-only.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int = -1
    attempt: int = 1

    @property
    def timestamp(self) -> datetime | None:
        """When it was written, in UTC, if the broker knows."""
        return None if self.timestamp_ms < 0 else datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"
