"""What a dead letter carries besides the record itself."""

from penstock.core.outcome import Failed, Outgoing
from penstock.core.record import Header, Record

PREFIX = "penstock-dlq-"

# A message is for people; a bound keeps a dead letter from growing past what the broker takes.
MAX_MESSAGE_BYTES = 1024
_MAX_NAME_BYTES = 249  # Kafka's own bound for a topic name


def dead_letter(record: Record, failure: Failed, *, topic: str, group: str, attempts: int, now: float) -> Outgoing:
    """The record, untouched, with headers that say where it came from and why it is here.

    A record that was dead-lettered before has those headers replaced, so they do not pile up.
    """
    reasons = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp_ms),
        "group": bounded(group, _MAX_NAME_BYTES),
        "attempts": str(attempts),
        "error-type": bounded(failure.error_type, _MAX_NAME_BYTES),
        "error-message": bounded(failure.message, MAX_MESSAGE_BYTES),
        "failed-at": str(round(now * 1000)),
    }
    kept = tuple(header for header in record.headers if not header[0].startswith(PREFIX))
    added: tuple[Header, ...] = tuple((PREFIX + name, value.encode()) for name, value in reasons.items())
    return Outgoing(topic, record.key, record.value, kept + added)


def bounded(text: str, limit: int) -> str:
    """The text in at most ``limit`` bytes of UTF-8, cut between characters and marked as cut."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return encoded.decode()
    mark = "…"
    return encoded[: limit - len(mark.encode())].decode(errors="ignore") + mark
