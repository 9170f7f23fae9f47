"""Makes the dead letter of a record: its key, value and headers unchanged, plus the headers of ``DeadLetterHeader``."""

from penstock.core.failures.dead_letter_headers import (
    DEAD_LETTER_PREFIX,
    ESSENTIAL_HEADERS,
    MAX_MESSAGE_BYTES,
    MAX_NAME_BYTES,
    MAX_TRACEBACK_BYTES,
    DeadLetterHeader,
    bounded,
)
from penstock.core.failures.outcome import Delayed, Failed, ProducerRecord
from penstock.core.records.origin import RETRY_PREFIX, RetryHeader
from penstock.core.records.record import Header, Record
from penstock.core.settings import redacted

# A record can be found again, or attempted again, without these headers.
_OPTIONAL_HEADERS = (frozenset(DeadLetterHeader) - ESSENTIAL_HEADERS) | {
    RetryHeader.TIMESTAMP,
    RetryHeader.ERROR_TYPE,
    RetryHeader.ERROR_MESSAGE,
}


def dead_letter(
    record: Record, failure: Failed, *, topic: str, group: str, attempts: int, now: float
) -> ProducerRecord:
    """The dead letter of this record, for ``topic``; ``now`` is in seconds since 1970.

    If the record is itself a dead letter, the new headers replace the old ones. If it comes from a retry topic, the
    headers name its source, and the headers of the retry topic are removed.
    """
    source = record.origin
    values = {
        DeadLetterHeader.TOPIC: source.topic,
        DeadLetterHeader.PARTITION: str(source.partition),
        DeadLetterHeader.OFFSET: str(source.offset),
        DeadLetterHeader.TIMESTAMP: str(source.timestamp_ms),
        DeadLetterHeader.GROUP: bounded(group, MAX_NAME_BYTES),
        DeadLetterHeader.ATTEMPTS: str(attempts),
        DeadLetterHeader.ERROR_TYPE: bounded(failure.error_type, MAX_NAME_BYTES),
        DeadLetterHeader.ERROR_MESSAGE: bounded(redacted(failure.message), MAX_MESSAGE_BYTES),
        DeadLetterHeader.FAILED_AT: str(round(now * 1000)),
    }
    if failure.traceback:
        values[DeadLetterHeader.TRACEBACK] = bounded(redacted(failure.traceback), MAX_TRACEBACK_BYTES)
    kept = kept_headers(record, failure, without=(DEAD_LETTER_PREFIX, RETRY_PREFIX))
    added: tuple[Header, ...] = tuple((name.value, value.encode()) for name, value in values.items())
    return ProducerRecord(topic, record.key, record.value, kept + added)


def kept_headers(record: Record, why: Failed | Delayed, *, without: tuple[str, ...]) -> tuple[Header, ...]:
    """The record's headers except those with these prefixes; headers of the outcome replace those of the same name."""
    replaced = {name for name, _ in why.headers}
    own = (each for each in record.headers if not each[0].startswith(without) and each[0] not in replaced)
    return (*own, *why.headers)


def shortened(outgoing: ProducerRecord) -> ProducerRecord:
    """The dead letter or retry record with only its essential headers, for records close to the topic's size limit."""
    kept = tuple(header for header in outgoing.headers if header[0] not in _OPTIONAL_HEADERS)
    return ProducerRecord(outgoing.topic, outgoing.key, outgoing.value, kept)
