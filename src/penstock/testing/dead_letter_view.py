"""Dead letters with their headers parsed, for tests."""

from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.core.failures.dead_letter_headers import DEAD_LETTER_PREFIX, DeadLetterHeader
from penstock.core.records.record import Header, Record


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A record that failed for good: its key, value and headers, its topic, partition and offset, and the reason."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    topic: str
    partition: int
    offset: int
    group: str
    attempts: int
    error_type: str
    error_message: str
    failed_at: datetime
    traceback: str = ""

    @property
    def reason(self) -> str:
        return f"{self.error_type}: {self.error_message}"


def read_letter(record: Record) -> DeadLetter:
    values = {name: (text or b"").decode() for name, text in record.headers if _is_added(name)}
    return DeadLetter(
        key=record.key,
        value=record.value,
        headers=tuple(header for header in record.headers if not _is_added(header[0])),
        topic=values[DeadLetterHeader.TOPIC],
        partition=int(values[DeadLetterHeader.PARTITION]),
        offset=int(values[DeadLetterHeader.OFFSET]),
        group=values[DeadLetterHeader.GROUP],
        attempts=int(values[DeadLetterHeader.ATTEMPTS]),
        error_type=values[DeadLetterHeader.ERROR_TYPE],
        error_message=values[DeadLetterHeader.ERROR_MESSAGE],
        failed_at=datetime.fromtimestamp(int(values[DeadLetterHeader.FAILED_AT]) / 1000, UTC),
        traceback=values.get(DeadLetterHeader.TRACEBACK, ""),
    )


def _is_added(name: str) -> bool:
    return name.startswith(DEAD_LETTER_PREFIX)
