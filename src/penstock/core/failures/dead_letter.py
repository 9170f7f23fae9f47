"""What a dead letter carries besides the record itself."""

from penstock.core.failures.outcome import Failed, ProducerRecord
from penstock.core.records import origin
from penstock.core.records.record import Header, Record
from penstock.core.settings import redacted

PREFIX = "penstock-dlq-"

# A message is for people; a bound keeps a dead letter from growing past what the broker takes.
MAX_MESSAGE_BYTES = 1024
MAX_TRACEBACK_BYTES = 4096
MAX_NAME_BYTES = 249  # Kafka's own bound for a topic name

# Without these a record still finds its way: back to its place in the source, or to its next attempt.
_SPARE = frozenset(
    PREFIX + name
    for name in ("timestamp", "group", "attempts", "error-type", "error-message", "traceback", "failed-at")
) | frozenset(origin.PREFIX + name for name in ("timestamp", "error-type", "error-message"))


def dead_letter(
    record: Record, failure: Failed, *, topic: str, group: str, attempts: int, now: float
) -> ProducerRecord:
    """The record, untouched, with headers that say where it came from and why it is here.

    A record that was dead-lettered before has those headers replaced, so they do not pile up. One that waited in retry
    topics is named by the place where it was first, and keeps nothing of its waits.
    """
    first = record.origin
    reasons = {
        "topic": first.topic,
        "partition": str(first.partition),
        "offset": str(first.offset),
        "timestamp": str(first.timestamp_ms),
        "group": bounded(group, MAX_NAME_BYTES),
        "attempts": str(attempts),
        "error-type": bounded(failure.error_type, MAX_NAME_BYTES),
        "error-message": bounded(redacted(failure.message), MAX_MESSAGE_BYTES),
        "failed-at": str(round(now * 1000)),
    }
    if failure.traceback:
        reasons["traceback"] = bounded(redacted(failure.traceback), MAX_TRACEBACK_BYTES)
    kept = kept_headers(record, failure, without=(PREFIX, origin.PREFIX))
    added: tuple[Header, ...] = tuple((PREFIX + name, value.encode()) for name, value in reasons.items())
    return ProducerRecord(topic, record.key, record.value, kept + added)


def kept_headers(record: Record, failure: Failed, *, without: tuple[str, ...]) -> tuple[Header, ...]:
    """The record's own, but for those that begin so, and with those of its failure."""
    replaced = {name for name, _ in failure.headers}
    own = (each for each in record.headers if not each[0].startswith(without) and each[0] not in replaced)
    return (*own, *failure.headers)


def shortened(outgoing: ProducerRecord) -> ProducerRecord:
    """The same with as little added to it as will do, for a record that leaves hardly any room."""
    kept = tuple(header for header in outgoing.headers if header[0] not in _SPARE)
    return ProducerRecord(outgoing.topic, outgoing.key, outgoing.value, kept)


def bounded(text: str, limit: int) -> str:
    """The text in at most ``limit`` bytes of UTF-8, cut between characters and marked as cut."""
    if len(text) <= limit and text.isascii():
        return text  # nearly always, and this is asked for each failure
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return encoded.decode()
    mark = "…"
    return encoded[: limit - len(mark.encode())].decode(errors="ignore") + mark
