"""Conditions on the raw record: its headers and its key. ``when=`` of a handler is made of them.

They travel to worker processes and Spark tasks, so they are plain data.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.core.records.record import Header
from penstock.errors import ConfigError

HeaderValue = str | bytes

_ANY_TEXT = "*"


@dataclass(frozen=True)
class HeaderCondition:
    """A header must have one of these values; with ``values`` None it must be there, or be missing.

    If a record has a header several times, its last value counts, as in Kafka's own ``Headers.lastHeader``.
    """

    name: str
    values: frozenset[bytes] | None = None
    present: bool = True

    def holds(self, last: Mapping[str, bytes | None]) -> bool:
        """``last`` has the last value of each header."""
        if self.values is None:
            return (self.name in last) is self.present
        return last.get(self.name) in self.values

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class KeyLike:
    """The key must match one of these patterns."""

    patterns: tuple[HeaderValue, ...]

    @cached_property
    def _matcher(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(map(_expression, self.patterns)), re.DOTALL)

    def holds(self, key: bytes | None) -> bool:
        return key is not None and self._matcher.fullmatch(key) is not None


def key_like(*patterns: HeaderValue) -> KeyLike:
    """``when=key_like("eu-*")``: the handler takes records whose key matches. ``*`` stands for any characters, or none.

    A record without a key does not match. Keys are compared as bytes, so they need not be text.

    Args:
        patterns: Text or bytes, such as ``"eu-*"`` or ``"eu-1"``. With several, the key must match one of them.
    """
    if not patterns or not all(isinstance(each, str | bytes) for each in patterns):
        raise ConfigError(
            f"key_like({', '.join(map(repr, patterns))}) names no pattern of keys.",
            hint='Write it as key_like("eu-*"), or key_like("eu-*", "us-*") for several patterns.',
        )
    return KeyLike(patterns)


def _expression(pattern: HeaderValue) -> bytes:
    parts = as_bytes(pattern).split(_ANY_TEXT.encode())
    return b"(?:" + b".*".join(map(re.escape, parts)) + b")"


def as_bytes(value: HeaderValue) -> bytes:
    return value.encode() if isinstance(value, str) else value


def last_values(headers: Iterable[Header] | None) -> dict[str, bytes | None]:
    """The last value of each header."""
    return dict(headers) if headers else {}
