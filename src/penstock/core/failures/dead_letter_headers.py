"""What dead letters say about themselves, in four ways: ours, Spring's, Karafka's, and those of Kafka's share groups.

Headers are anybody's to write: what cannot be is left out, texts are bounded, and nothing in here is an error.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.core.failures import dead_letter
from penstock.core.failures.dead_letter import MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_TRACEBACK_BYTES, bounded
from penstock.core.records import origin
from penstock.core.records.origin import number
from penstock.core.records.record import Header

REPLAY = "penstock-replay-"
RETURNS = f"{REPLAY}count"

_SPRING = "kafka_dlt-"
_KARAFKA = "source_"
_KARAFKA_NAMES = frozenset(
    _KARAFKA + name for name in ("topic", "partition", "offset", "consumer_group", "key", "attempts", "trace_id")
)
_SHARE = "__dlq.errors."
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Note:
    """Where a letter was a record, why it is here, and since when; empty or None where its headers do not say."""

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
        """The name of the error without its module or package, or else the message."""
        return self.error_type.rpartition(".")[2] or self.message or "unknown"


_Headers = Mapping[str, bytes | None]


def read_note(headers: Iterable[Header]) -> Note:
    found = dict(headers)
    for is_one, read in _STYLES:
        if is_one in found:
            return read(found)
    return Note()


def without_notes(headers: Iterable[Header]) -> tuple[Header, ...]:
    """The record's own headers: what a replay sends, so that notes do not pile up with each return."""
    prefixes = (dead_letter.PREFIX, origin.PREFIX, REPLAY, _SPRING, _SHARE)
    return tuple(each for each in headers if not each[0].startswith(prefixes) and each[0] not in _KARAFKA_NAMES)


def returns_of(headers: Iterable[Header]) -> int:
    """How often a replay has sent it back already."""
    return number(dict(headers).get(RETURNS), most=_MAX_INT32) or 0


def _ours(found: _Headers) -> Note:
    prefix = dead_letter.PREFIX
    return Note(
        "penstock",
        _name(found, f"{prefix}topic"),
        number(found.get(f"{prefix}partition"), most=_MAX_INT32),
        number(found.get(f"{prefix}offset")),
        number(found.get(f"{prefix}timestamp")),
        _name(found, f"{prefix}group"),
        number(found.get(f"{prefix}attempts"), most=_MAX_INT32),
        _name(found, f"{prefix}error-type"),
        _text(found, f"{prefix}error-message"),
        number(found.get(f"{prefix}failed-at")),
        _text(found, f"{prefix}traceback", MAX_TRACEBACK_BYTES),
    )


def _spring(found: _Headers) -> Note:
    original, exception = f"{_SPRING}original-", f"{_SPRING}exception-"
    # The cause is what the handler raised; around it is only the container's own error.
    raised = _name(found, f"{exception}cause-fqcn") or _name(found, f"{exception}fqcn")
    return Note(
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


def _karafka(found: _Headers) -> Note:
    return Note(
        "karafka",
        _name(found, f"{_KARAFKA}topic"),
        number(found.get(f"{_KARAFKA}partition"), most=_MAX_INT32),
        number(found.get(f"{_KARAFKA}offset")),
        None,
        _name(found, f"{_KARAFKA}consumer_group"),
        number(found.get(f"{_KARAFKA}attempts"), most=_MAX_INT32),
    )


def _share(found: _Headers) -> Note:
    return Note(
        "share",
        _name(found, f"{_SHARE}topic"),
        _either(found.get(f"{_SHARE}partition"), 4),
        _either(found.get(f"{_SHARE}offset"), 8),
        None,
        _name(found, f"{_SHARE}group"),
        _either(found.get(f"{_SHARE}delivery.count"), 2),
        "",
        _text(found, f"{_SHARE}message"),
    )


_STYLES: tuple[tuple[str, Callable[[_Headers], Note]], ...] = (
    (f"{dead_letter.PREFIX}topic", _ours),
    (f"{_SPRING}original-topic", _spring),
    (f"{_SHARE}topic", _share),
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


def _either(value: bytes | None, size: int) -> int | None:
    read = number(value)
    return _big_endian(value, size) if read is None else read
