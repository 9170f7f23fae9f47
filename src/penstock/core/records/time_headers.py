"""The headers in which a producer says from when and until when a record may be handled."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from penstock.core.records.origin import number
from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError

Time = datetime | Duration
"""A time with a time zone, or how long from now."""


class TimeHeader(StrEnum):
    """Both are milliseconds since 1970, as decimal digits in UTF-8."""

    NOT_BEFORE = "penstock-not-before"  # a handler gets the record at this time or later
    EXPIRES = "penstock-expires"  # from this time on, no handler gets the record


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """In seconds since 1970. ``problem`` says which header is damaged."""

    not_before: float | None = None
    expires: float | None = None
    problem: str = ""


NO_TIMES = RecordTimes()


def time_headers(not_before: Time | None, expires: Time | None, *, now: float) -> tuple[tuple[str, bytes], ...]:
    """The headers for these times; ``now`` is in seconds since 1970. Raises ConfigError for an impossible pair."""
    found = {
        name: _since_1970(value, option, now)
        for name, value, option in (
            (TimeHeader.NOT_BEFORE, not_before, "not_before"),
            (TimeHeader.EXPIRES, expires, "expires"),
        )
        if value is not None
    }
    if len(found) > 1 and found[TimeHeader.EXPIRES] <= found[TimeHeader.NOT_BEFORE]:
        raise ConfigError(
            f"expires={expires!r} is not after not_before={not_before!r}, so no handler would ever get the record.",
            hint="Let it expire later.",
        )
    return tuple((name.value, str(round(at * 1000)).encode()) for name, at in found.items())


def read_times(headers: Iterable[tuple[str, bytes | None]]) -> RecordTimes:
    """The times in the headers of a record. If a header occurs twice, the last one counts."""
    found = {name: value for name, value in headers if name in _NAMES}
    if not found:
        return NO_TIMES
    times = {name: number(value) for name, value in found.items()}
    for name, value in times.items():
        if value is None:
            return RecordTimes(problem=f"the header {name} is not a time in milliseconds since 1970")
    not_before, expires = times.get(TimeHeader.NOT_BEFORE), times.get(TimeHeader.EXPIRES)
    return RecordTimes(_in_seconds(not_before), _in_seconds(expires))


_NAMES = frozenset(map(str, TimeHeader))


def _in_seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _since_1970(value: Time, option: str, now: float) -> float:
    if not isinstance(value, datetime):
        return now + seconds(value, name=option)
    if value.tzinfo is None:
        raise ConfigError(
            f"{option}={value!r} has no time zone, so its meaning depends on the machine.",
            hint="Add one: datetime(2030, 1, 31, tzinfo=UTC).",
        )
    return value.timestamp()
