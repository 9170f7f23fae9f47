"""The headers of dead letters: their names and meanings (here and nowhere else), and how to read them.

``DeadLetterHeader`` is the table of the headers that Penstock writes, on the local engine as well as on Spark.
``ReplayHeader`` is the table of those that ``penstock dlq replay`` adds. The table for retry topics, ``RetryHeader``,
is in ``core/records/origin.py``. Dead letters of Spring, Karafka and Kafka's share groups are read too.

Any producer can write headers. So the readers here raise no errors: they leave out impossible values and limit the
length of every text.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from penstock.core.records.origin import RETRY_PREFIX, number
from penstock.core.records.record import Header

# Limits keep a dead letter from growing past the size that the broker accepts.
MAX_MESSAGE_BYTES = 1024
MAX_TRACEBACK_BYTES = 4096
MAX_NAME_BYTES = 249  # Kafka's limit for a topic name
# Of a reason in what the dashboard reads. An error may quote a record: megabytes, or half of a character.
MAX_REASON_BYTES = 2_000

DEAD_LETTER_PREFIX = "penstock-dlq-"
REPLAY_PREFIX = "penstock-replay-"


class DeadLetterHeader(StrEnum):
    """What Penstock writes into a dead letter. Values are UTF-8 text; numbers are decimal digits."""

    TOPIC = f"{DEAD_LETTER_PREFIX}topic"  # source topic of the record, before any retry topic
    PARTITION = f"{DEAD_LETTER_PREFIX}partition"  # its partition in the source topic
    OFFSET = f"{DEAD_LETTER_PREFIX}offset"  # its offset in that partition
    TIMESTAMP = f"{DEAD_LETTER_PREFIX}timestamp"  # its timestamp, in ms since 1970; -1 if it has none
    GROUP = f"{DEAD_LETTER_PREFIX}group"  # the consumer group whose handler failed
    ATTEMPTS = f"{DEAD_LETTER_PREFIX}attempts"  # how many attempts were made
    ERROR_TYPE = f"{DEAD_LETTER_PREFIX}error-type"  # class of the last error, with its module unless built in
    ERROR_MESSAGE = f"{DEAD_LETTER_PREFIX}error-message"  # its message, at most MAX_MESSAGE_BYTES
    TRACEBACK = f"{DEAD_LETTER_PREFIX}traceback"  # at most MAX_TRACEBACK_BYTES; absent if there is none
    FAILED_AT = f"{DEAD_LETTER_PREFIX}failed-at"  # when it failed, in ms since 1970


# What a dead letter keeps if it is too large for its topic: enough to find the record again.
ESSENTIAL_HEADERS = frozenset({DeadLetterHeader.TOPIC, DeadLetterHeader.PARTITION, DeadLetterHeader.OFFSET})


class ReplayHeader(StrEnum):
    """What a replay writes into the copies that it sends."""

    COUNT = f"{REPLAY_PREFIX}count"  # how many times the record has been replayed
    FROM = f"{REPLAY_PREFIX}from"  # the dead letter, as TOPIC[PARTITION]@OFFSET
    AT = f"{REPLAY_PREFIX}at"  # when, in ms since 1970


_SPRING = "kafka_dlt-"
_KARAFKA = "source_"
_KARAFKA_NAMES = frozenset(
    _KARAFKA + name for name in ("topic", "partition", "offset", "consumer_group", "key", "attempts", "trace_id")
)
_SHARE = "__dlq.errors."
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeadLetterInfo:
    """What the headers of a dead letter say: its source, its error, and when it failed.

    ``style`` is the software that wrote it. A field is empty or None if no header says it.
    """

    style: str = ""
    topic: str = ""
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    group: str = ""
    attempts: int | None = None
    error_type: str = ""
    message: str = ""
    failed_at_ms: int | None = None
    traceback: str = ""

    @property
    def reason(self) -> str:
        """The name of the error without its module or package; if there is none, the message."""
        return self.error_type.rpartition(".")[2] or self.message or "unknown"


_Headers = Mapping[str, bytes | None]


def read_dead_letter_info(headers: Iterable[Header]) -> DeadLetterInfo:
    found = dict(headers)
    for identifying_header, read in _STYLES:
        if identifying_header in found:
            return read(found)
    return DeadLetterInfo()


def without_failure_headers(headers: Iterable[Header]) -> tuple[Header, ...]:
    """The record's own headers. A replay sends only these, so that added headers do not accumulate."""
    prefixes = (DEAD_LETTER_PREFIX, RETRY_PREFIX, REPLAY_PREFIX, _SPRING, _SHARE)
    return tuple(each for each in headers if not each[0].startswith(prefixes) and each[0] not in _KARAFKA_NAMES)


def replay_count(headers: Iterable[Header]) -> int:
    """How many times the record has been replayed."""
    return number(dict(headers).get(ReplayHeader.COUNT), most=_MAX_INT32) or 0


def bounded(text: str, limit: int) -> str:
    """The text in at most ``limit`` bytes of UTF-8; if it is longer, it is cut between characters and ends with "…"."""
    if len(text) <= limit and text.isascii():
        return text  # the usual case, and this runs for every failure
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return encoded.decode()
    mark = "…"
    return encoded[: limit - len(mark.encode())].decode(errors="ignore") + mark


def _penstock(found: _Headers) -> DeadLetterInfo:
    return DeadLetterInfo(
        "penstock",
        _name(found, DeadLetterHeader.TOPIC),
        number(found.get(DeadLetterHeader.PARTITION), most=_MAX_INT32),
        number(found.get(DeadLetterHeader.OFFSET)),
        number(found.get(DeadLetterHeader.TIMESTAMP)),
        _name(found, DeadLetterHeader.GROUP),
        number(found.get(DeadLetterHeader.ATTEMPTS), most=_MAX_INT32),
        _name(found, DeadLetterHeader.ERROR_TYPE),
        _text(found, DeadLetterHeader.ERROR_MESSAGE),
        number(found.get(DeadLetterHeader.FAILED_AT)),
        _text(found, DeadLetterHeader.TRACEBACK, MAX_TRACEBACK_BYTES),
    )


def _spring(found: _Headers) -> DeadLetterInfo:
    original, exception = f"{_SPRING}original-", f"{_SPRING}exception-"
    # The cause is the exception of the handler; Spring's listener container wraps it in an exception of its own.
    raised = _name(found, f"{exception}cause-fqcn") or _name(found, f"{exception}fqcn")
    return DeadLetterInfo(
        "spring",
        _name(found, f"{original}topic"),
        _big_endian(found.get(f"{original}partition"), 4),
        _big_endian(found.get(f"{original}offset"), 8),
        _big_endian(found.get(f"{original}timestamp"), 8),
        _name(found, f"{original}consumer-group"),
        None,
        raised,
        _text(found, f"{exception}message"),
        traceback=_text(found, f"{exception}stacktrace", MAX_TRACEBACK_BYTES),
    )


def _karafka(found: _Headers) -> DeadLetterInfo:
    return DeadLetterInfo(
        "karafka",
        _name(found, f"{_KARAFKA}topic"),
        number(found.get(f"{_KARAFKA}partition"), most=_MAX_INT32),
        number(found.get(f"{_KARAFKA}offset")),
        None,
        _name(found, f"{_KARAFKA}consumer_group"),
        number(found.get(f"{_KARAFKA}attempts"), most=_MAX_INT32),
    )


def _share_group(found: _Headers) -> DeadLetterInfo:
    return DeadLetterInfo(
        "share",
        _name(found, f"{_SHARE}topic"),
        _digits_or_big_endian(found.get(f"{_SHARE}partition"), 4),
        _digits_or_big_endian(found.get(f"{_SHARE}offset"), 8),
        None,
        _name(found, f"{_SHARE}group"),
        _digits_or_big_endian(found.get(f"{_SHARE}delivery.count"), 2),
        "",
        _text(found, f"{_SHARE}message"),
    )


# A header that identifies the style, and its reader.
_STYLES: tuple[tuple[str, Callable[[_Headers], DeadLetterInfo]], ...] = (
    (DeadLetterHeader.TOPIC, _penstock),
    (f"{_SPRING}original-topic", _spring),
    (f"{_SHARE}topic", _share_group),
    (f"{_KARAFKA}topic", _karafka),
)


def _name(found: _Headers, header: str) -> str:
    return bounded((found.get(header) or b"")[: 4 * MAX_NAME_BYTES].decode(errors="replace"), MAX_NAME_BYTES)


def _text(found: _Headers, header: str, limit: int = MAX_MESSAGE_BYTES) -> str:
    return bounded((found.get(header) or b"")[: 4 * limit].decode(errors="replace"), limit)


def _big_endian(value: bytes | None, size: int) -> int | None:
    if value is None or len(value) != size:
        return None
    read = int.from_bytes(value, "big", signed=True)
    return read if read >= 0 else None


def _digits_or_big_endian(value: bytes | None, size: int) -> int | None:
    read = number(value)
    return _big_endian(value, size) if read is None else read
