"""Kafka's topic of commits, ``__consumer_offsets``: which of its partitions holds a group, and what its records mean.

Penstock reads these records to learn when a group committed which offset. The broker writes them and may use formats
that this module does not know; it ignores such records and raises no error.

No other module computes the partition of a group.
"""

import struct
from dataclasses import dataclass

from penstock.core.records.java_hash import text_hash
from penstock.core.records.record import TopicPartition
from penstock.core.records.varints import read_varint

COMMIT_LOG = "__consumer_offsets"

_OFFSET_KEYS = (0, 1)
_VALUE_WITH_EPOCH = 3
_VALUE_COMPACT = 4
_NEWEST_VALUE = 4
_SIGN = 1 << 31
_LONGEST_LENGTH = 5  # bytes of a 32-bit varint


@dataclass(frozen=True, slots=True)
class CommitKey:
    group: str
    tp: TopicPartition


@dataclass(frozen=True, slots=True)
class CommitValue:
    offset: int
    metadata: str


def group_hash(group: str) -> int:
    """The hash by which Kafka places a group: the absolute value of Java's signed hash code of the group's name."""
    code = text_hash(group)
    if code == _SIGN:  # The lowest signed number has no positive counterpart. Kafka's ``Utils.abs`` returns 0 for it.
        return 0
    return code if code < _SIGN else (1 << 32) - code


def partition_of(group: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that holds the group; ``partitions`` is how many the topic has."""
    return group_hash(group) % partitions


def read_key(key: bytes) -> CommitKey | None:
    """Parse the key of a record in ``__consumer_offsets``; None if the record is not an offset commit."""
    try:
        (version,) = struct.unpack_from(">h", key)
        if version not in _OFFSET_KEYS:
            return None
        group, at = _text(key, 2)
        topic, at = _text(key, at)
        (partition,) = struct.unpack_from(">i", key, at)
    except (struct.error, ValueError):
        return None
    return CommitKey(group, (topic, partition))


def read_value(value: bytes) -> CommitValue | None:
    """Parse the value of an offset commit; None if its version is unknown or its bytes are damaged."""
    try:
        version, offset = struct.unpack_from(">hq", value)
        if not 0 <= version <= _NEWEST_VALUE:
            return None
        at = 10 + (4 if version >= _VALUE_WITH_EPOCH else 0)
        metadata = _compact_text(value, at) if version >= _VALUE_COMPACT else _text(value, at)[0]
    except (struct.error, ValueError, IndexError):
        return None
    # librdkafka sends the zero byte that ends a C string as part of the metadata.
    return CommitValue(offset, metadata.removesuffix("\0"))


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    end = at + 2 + length
    if length < 0 or end > len(data):
        raise ValueError("truncated")
    return data[at + 2 : end].decode(), end


def _compact_text(data: bytes, at: int) -> str:
    length, at = read_varint(data, at, longest=_LONGEST_LENGTH)
    if length < 1 or at + length - 1 > len(data):
        raise ValueError("truncated")
    return data[at : at + length - 1].decode()
