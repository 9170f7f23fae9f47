"""Compares the outputs and the dead letters of two engines."""

from collections import defaultdict
from collections.abc import Iterable

from penstock.core.failures.dead_letter_headers import DeadLetterHeader
from penstock.core.records.record import Record

# The headers of a dead letter that must be equal. The group and the time of the failure always differ.
_ORIGIN = (DeadLetterHeader.PARTITION, DeadLetterHeader.OFFSET)
_REASON = (
    DeadLetterHeader.TOPIC,
    DeadLetterHeader.ATTEMPTS,
    DeadLetterHeader.ERROR_TYPE,
    DeadLetterHeader.ERROR_MESSAGE,
)

_SHOWN_DIFFERENCES = 3


def compare_outputs(one: Iterable[Record], other: Iterable[Record]) -> list[str]:
    """Return the differences: each key must have the same values in the same order."""
    return _differences("key", _by_key(one), _by_key(other))


def compare_dead_letters(one: Iterable[Record], other: Iterable[Record]) -> list[str]:
    """Return the differences: both must have the same unchanged records with the same reasons."""
    return _differences("dead letter of partition and offset", _by_origin(one), _by_origin(other))


def _by_key(records: Iterable[Record]) -> dict[object, object]:
    values: dict[object, list[bytes | None]] = defaultdict(list)
    for record in records:
        values[record.key].append(record.value)
    return dict(values)


def _by_origin(records: Iterable[Record]) -> dict[object, object]:
    found: dict[object, object] = {}
    for record in records:
        headers = dict(record.headers)
        origin = tuple(headers.get(name) for name in _ORIGIN)
        reason = tuple(headers.get(name) for name in _REASON)
        found[origin] = (record.key, record.value, reason)
    return found


def _differences(what: str, one: dict[object, object], other: dict[object, object]) -> list[str]:
    differing = sorted((name for name in {*one, *other} if one.get(name) != other.get(name)), key=repr)
    shown = [f"the engines differ at {what} {name!r}" for name in differing[:_SHOWN_DIFFERENCES]]
    further = len(differing) - len(shown)
    return [*shown, f"and at {further:,} more"] if further > 0 else shown
