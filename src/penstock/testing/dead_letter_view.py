"""Dead letters with their headers parsed, for tests."""

from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.core.failures.dead_letter import PREFIX
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
    ours = {name.removeprefix(PREFIX): (text or b"").decode() for name, text in record.headers if _is_ours(name)}
    return DeadLetter(
        key=record.key,
        value=record.value,
        headers=tuple(header for header in record.headers if not _is_ours(header[0])),
        topic=ours["topic"],
        partition=int(ours["partition"]),
        offset=int(ours["offset"]),
        group=ours["group"],
        attempts=int(ours["attempts"]),
        error_type=ours["error-type"],
        error_message=ours["error-message"],
        failed_at=datetime.fromtimestamp(int(ours["failed-at"]) / 1000, UTC),
        traceback=ours.get("traceback", ""),
    )


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX)
