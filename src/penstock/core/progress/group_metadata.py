"""Parses the subscription and rack of a group's members from the bytes that Kafka stores.

In the classic protocol, members send their subscription to the group's leader, in a format that all clients share. In
the new protocol (KIP-848), members send it to the broker, which writes it to ``__consumer_offsets``. Clients and
brokers may use formats that this module does not know; its functions then return None and raise no error.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

SELF_MANAGED_MARK = b"\x00penstock"
"""The last bytes of a self-managed member's user data. Assignors read user data from the front and do not see them."""

_WITH_OWNED = 1
_WITH_GENERATION = 2
_WITH_RACK = 3
_CLASSIC_GROUP_KEY = 2
_GROUP_KEY = 3
_MEMBER_KEY = 5
_PATTERN_KEY = 16
_KNOWN_VALUE = 0
_COMPACT_GROUP = 4  # from this version on
_LAST_BYTE = 0x80
_LONGEST_NUMBER = 28

_UNREADABLE = (ValueError, struct.error)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member subscribes to, and its rack.

    ``pattern`` is the regular expression of a member of the new protocol; the broker resolves it to topics.
    If a self-managed member (``is_self_managed``) leads the group, a Penstock assignor assigns the partitions.
    """

    topics: tuple[str, ...]
    rack: str | None = None
    pattern: str | None = None
    is_self_managed: bool = False


@dataclass(frozen=True, slots=True)
class MemberKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class PatternKey:
    group: str
    pattern: str


@dataclass(frozen=True, slots=True)
class GroupKey:
    group: str
    classic: bool


Key = MemberKey | PatternKey | GroupKey


def read_subscription(data: bytes) -> Subscription | None:
    """Parse the subscription in a JoinGroup request of the classic protocol; newer versions only append fields."""
    return _read(data, _subscription)


def read_key(data: bytes) -> Key | None:
    """Parse a key in ``__consumer_offsets`` that describes a group, a member or a pattern; None for other keys."""
    try:
        return _key(_Data(data))
    except _UNREADABLE:
        return None


def read_member(data: bytes) -> Subscription | None:
    """Parse the value that the broker stores for a member of the new protocol."""
    return _read(data, _member)


def read_matches(data: bytes) -> tuple[str, ...] | None:
    """The topics to which the broker has resolved a pattern."""
    return _read(data, _matches)


def read_epoch(data: bytes, *, classic: bool) -> int | None:
    """The epoch of a group, or its generation in the classic protocol."""
    return _read(data, _generation if classic else _epoch)


def _generation(data: "_Data") -> int | None:
    version = data.int16()
    data.text() if version < _COMPACT_GROUP else data.compact_text()
    return data.int32()


def _epoch(data: "_Data") -> int | None:
    return data.int32() if data.int16() == _KNOWN_VALUE else None


def _subscription(data: "_Data") -> Subscription:
    version = data.int16()
    topics = tuple(data.text() for _ in range(data.int32()))
    if not all(topics):
        raise ValueError("a topic name is empty")
    user_data = data.raw(max(0, data.int32()))
    if version >= _WITH_OWNED:
        for _ in range(data.int32()):
            data.text()
            data.skip(4 * data.int32())
    if version >= _WITH_GENERATION:
        data.int32()
    rack = data.text() or None if version >= _WITH_RACK else None
    return Subscription(topics, rack, is_self_managed=user_data.endswith(SELF_MANAGED_MARK))


def _key(data: "_Data") -> Key | None:
    kind = data.int16()
    if kind in {_CLASSIC_GROUP_KEY, _GROUP_KEY}:
        return GroupKey(data.text(), classic=kind == _CLASSIC_GROUP_KEY)
    if kind not in {_MEMBER_KEY, _PATTERN_KEY}:
        return None
    group, name = data.text(), data.text()
    return MemberKey(group, name) if kind == _MEMBER_KEY else PatternKey(group, name)


def _member(data: "_Data") -> Subscription | None:
    if data.int16() != _KNOWN_VALUE:
        return None
    _static_id, rack, _client, _host = (data.compact_text() for _ in range(4))
    topics = data.compact_texts()
    return Subscription(topics, rack or None, data.compact_text() or None)


def _matches(data: "_Data") -> tuple[str, ...] | None:
    return data.compact_texts() if data.int16() == _KNOWN_VALUE else None


def _read(data: bytes, form: "Callable[[_Data], T | None]") -> T | None:
    try:
        return form(_Data(data))
    except _UNREADABLE:
        return None


class _Data:
    """Reads bytes from front to back; reading past the end raises ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return int.from_bytes(self._take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), signed=True)

    def text(self) -> str:
        """A string; empty if it is null."""
        return self._take(max(0, self.int16())).decode()

    def compact_text(self) -> str:
        return self._take(max(0, self._number() - 1)).decode()

    def compact_texts(self) -> tuple[str, ...]:
        return tuple(self.compact_text() for _ in range(max(0, self._number() - 1)))

    def raw(self, length: int) -> bytes:
        return self._take(length)

    def skip(self, length: int) -> None:
        self._take(length)

    def _number(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self._take(1)
            number |= (byte & ~_LAST_BYTE) << shift
            shift += 7
            if byte < _LAST_BYTE or shift > _LONGEST_NUMBER:
                return number

    def _take(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise ValueError("truncated")
        taken = self._data[self._at : end]
        self._at = end
        return taken
