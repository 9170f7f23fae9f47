"""What a member subscribes to and where it runs, from the bytes in which groups keep that.

Members of the classic protocol tell it to their leader, in a form that all clients share. Members of the new one tell
it to the broker, which writes it into the log of commits. What is not of a known form is told as nothing, never as an
error: it is the clients' and the broker's.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

OPEN_MARK = b"\x00penstock"
"""Ends the user data of members that Penstock itself joins to the group; assignors read user data from the front."""

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
    """``pattern`` is what a member of the new protocol asks for besides its topics; the broker says what matches it.

    ``is_open`` is true of members that Penstock itself joins to the group: if one of them leads, Penstock's assignors
    decide.
    """

    topics: tuple[str, ...]
    rack: str | None = None
    pattern: str | None = None
    is_open: bool = False


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
    """Of a member of the classic protocol, as it joined; versions to come have more at the end."""
    return _read(data, _subscription)


def read_key(data: bytes) -> Key | None:
    """What a record of the log of commits is about, if it is about a group, or about a subscription to one."""
    try:
        return _key(_Data(data))
    except _UNREADABLE:
        return None


def read_member(data: bytes) -> Subscription | None:
    return _read(data, _member)


def read_matches(data: bytes) -> tuple[str, ...] | None:
    """The topics that the broker has found for a pattern."""
    return _read(data, _matches)


def read_epoch(data: bytes, *, classic: bool) -> int | None:
    """How often a group has changed: its epoch, or in the classic protocol its generation."""
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
        raise ValueError("a topic without a name")
    user_data = data.raw(max(0, data.int32()))
    if version >= _WITH_OWNED:
        for _ in range(data.int32()):
            data.text()
            data.skip(4 * data.int32())
    if version >= _WITH_GENERATION:
        data.int32()
    rack = data.text() or None if version >= _WITH_RACK else None
    return Subscription(topics, rack, is_open=user_data.endswith(OPEN_MARK))


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
    """Bytes that are read from front to back; whoever asks for more than there is gets an error."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return int.from_bytes(self._take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), signed=True)

    def text(self) -> str:
        """Empty where there is none."""
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
            raise ValueError("cut short")
        taken = self._data[self._at : end]
        self._at = end
        return taken
