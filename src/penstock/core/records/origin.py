"""The source of a record that waited in a retry topic, and the table of the headers that retry topics use."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

RETRY_PREFIX = "penstock-retry-"

# A retry topic is named SOURCE.retry.DURATION.
RETRY_INFIX = ".retry."

# Any producer can write headers: a number in them has at most as many digits as the largest offset.
_MAX_DIGITS = 19
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


class RetryHeader(StrEnum):
    """What Penstock writes into a record of a retry topic. Values are UTF-8 text; numbers are decimal digits."""

    TOPIC = f"{RETRY_PREFIX}topic"  # source topic of the record
    PARTITION = f"{RETRY_PREFIX}partition"  # its partition in the source topic
    OFFSET = f"{RETRY_PREFIX}offset"  # its offset in that partition
    TIMESTAMP = f"{RETRY_PREFIX}timestamp"  # its timestamp there, in ms since 1970; -1 if it has none
    GROUP = f"{RETRY_PREFIX}group"  # the consumer group that will attempt it again; other groups ignore the record
    ATTEMPT = f"{RETRY_PREFIX}attempt"  # the number of the next attempt
    DUE = f"{RETRY_PREFIX}due"  # when the next attempt is due, in ms since 1970
    UNTIL = f"{RETRY_PREFIX}until"  # only after Later: the handler is not called before this time, in ms since 1970
    ERROR_TYPE = f"{RETRY_PREFIX}error-type"  # class of the last error
    ERROR_MESSAGE = f"{RETRY_PREFIX}error-message"  # its message


@dataclass(frozen=True, slots=True)
class Origin:
    """Topic, partition and offset of a record, and its timestamp (-1 if it has none)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


def origin_of(here: Origin, headers: Iterable[tuple[str, bytes | None]]) -> Origin:
    """The source that the headers name, if ``here`` is in a retry topic of that source; otherwise ``here``.

    On any other topic, someone else wrote these headers: a dead letter must not name a source taken from them.
    """
    if RETRY_INFIX not in here.topic:
        return here
    found = dict(headers)
    topic = (found.get(RetryHeader.TOPIC) or b"").decode(errors="replace")
    partition = number(found.get(RetryHeader.PARTITION), most=_MAX_INT32)
    offset = number(found.get(RetryHeader.OFFSET))
    if not topic or not here.topic.startswith(topic + RETRY_INFIX) or partition is None or offset is None:
        return here
    timestamp = number(found.get(RetryHeader.TIMESTAMP))
    return Origin(topic, partition, offset, -1 if timestamp is None else timestamp)


def number(text: bytes | None, *, most: int = _MAX_INT64) -> int | None:
    """The number in a header, if it is decimal digits from 0 to ``most``; otherwise None."""
    if text is None or len(text) > _MAX_DIGITS or not text.isdigit():
        return None
    value = int(text)
    return value if value <= most else None
