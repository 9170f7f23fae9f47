"""Parses times and durations that operators write, in the formats of Kafka's tools and of Penstock."""

import re
from datetime import UTC, datetime

from penstock.core.text.durations import seconds
from penstock.errors import ConfigError

_ISO_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)
_UNITS = (86400, 3600, 60, 1)
_MAX_SECONDS = 10**10
_DATE_FORM = "Write it as 2030-01-31T12:00:00, in UTC, or with an offset as in 2030-01-31T12:00:00+02:00."


def moment(text: str, *, name: str) -> float:
    """A date and time, in seconds since 1970; without a UTC offset it is UTC, as in Kafka's tools."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"{name}={text!r} is not a date and time.", hint=_DATE_FORM) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def span(text: str, *, name: str) -> float:
    """A duration in seconds, from Java's format (``P1DT2H``) or Penstock's (``26h``)."""
    match = _ISO_SPAN.fullmatch(text.strip())
    if match and any(match.groups()):
        total = sum(float(part) * unit for part, unit in zip(match.groups(), _UNITS, strict=True) if part)
    else:
        total = seconds(text, name=name)
    if total > _MAX_SECONDS:
        raise ConfigError(f"{name}={text!r} is longer than Kafka has existed.", hint='Write it as "26h" or "P1DT2H".')
    return total


def moment_or_ago(text: str, *, now: float, name: str) -> float:
    """A date and time, or how long ago (``15m``), in seconds since 1970."""
    try:
        return now - span(text, name=name)
    except ConfigError:
        return moment(text, name=name)
