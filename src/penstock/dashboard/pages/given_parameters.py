"""Reads the parameters that a browser sends: each wrong one is an error that names it."""

import time
from collections.abc import Mapping
from typing import Any

from penstock.core.text.timestamps import moment_or_ago
from penstock.errors import ConfigError

_MAX_CHARS = 4_000
# The end of the year 9999: later times are no dates.
_MAX_SECONDS = 253_402_300_799.0


def text_of(given: Mapping[str, Any], name: str) -> str:
    """Return the text, or an empty one if there is none."""
    value = given.get(name)
    if value is None:
        return ""
    text = str(value)
    if len(text) > _MAX_CHARS:
        raise ConfigError(f"{name} is too long.", hint=f"Write at most {_MAX_CHARS:,} characters.")
    return text


def needed_text(given: Mapping[str, Any], name: str) -> str:
    found = text_of(given, name)
    if not found:
        raise ConfigError(f"The request has no {name}.", hint="Open the page from the navigation.")
    return found


def whole_of(given: Mapping[str, Any], name: str, *, most: int = 2**63 - 1) -> int | None:
    """Return the number, or None if there is none."""
    text = text_of(given, name).strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most):
        raise ConfigError(f"{name}={text!r} is not a number.", hint=f"Write a number from 0 to {most:,}.")
    return int(text)


def time_of(given: Mapping[str, Any], name: str) -> float | None:
    """Return a time in seconds since 1970: given as such, as 15m (ago), or as a date; None if there is none."""
    text = text_of(given, name).strip()
    if not text:
        return None
    if text.replace(".", "", 1).isdecimal() and text.isascii():
        if float(text) > _MAX_SECONDS:
            raise ConfigError(f"{name} is too far in the future.", hint="Write seconds since 1970, or a date.")
        return float(text)
    return moment_or_ago(text, now=time.time(), name=name)
