"""Durations as people write them: ``"250ms"``, ``"1s"``, ``"1.5m"``, ``"2h"``, or a number of seconds."""

import re

from penstock.errors import ConfigError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")

Duration = str | float | int


def seconds(value: Duration, *, name: str) -> float:
    """The duration in seconds; ``name`` is the name of the option, for errors."""
    if isinstance(value, str):
        match = _FORM.fullmatch(value)
        if match:
            return float(match[1]) * _SECONDS[match[2]]
    elif not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    raise ConfigError(
        f"{name}={value!r} is not a duration.",
        hint='Write a number with a unit, such as "250ms", "1s" or "5m", or a number of seconds.',
    )
