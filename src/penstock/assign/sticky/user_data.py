"""The format of the user data that members with Kafka's sticky assignors send to the leader."""

from collections.abc import Iterable
from itertools import repeat
from struct import Struct, error, pack, unpack_from

from penstock.core.records.record import TopicPartition

_INT16 = Struct(">h")
_INT32 = Struct(">i")
UNREADABLE_GENERATION = -1


def write_sticky(owned: Iterable[TopicPartition], generation: int) -> bytes:
    """What a member with the eager ``sticky`` owned, and its generation."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in owned:
        by_topic.setdefault(topic, []).append(number)
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join([*parts, _INT32.pack(generation)])


def read_sticky(data: bytes | None) -> tuple[list[TopicPartition], int | None]:
    """What the member owned, and its generation (None if it does not say); empty if the data cannot be read."""
    if not data:
        return [], None
    try:
        owned, end = _read_owned(data)
    except (error, ValueError):
        return [], UNREADABLE_GENERATION
    # The oldest clients write no generation.
    return owned, _INT32.unpack_from(data, end)[0] if end + _INT32.size <= len(data) else None


def _read_owned(data: bytes) -> tuple[list[TopicPartition], int]:
    """The listed partitions, and where the list ends. Lengths are checked against the size of the data before use."""
    size = len(data)
    (topics,) = _INT32.unpack_from(data, 0)
    at = _INT32.size
    if not 0 <= topics <= size - at:
        raise ValueError(topics)
    owned: list[TopicPartition] = []
    for _ in range(topics):
        (length,) = _INT16.unpack_from(data, at)
        at += _INT16.size
        if not 0 <= length <= size - at:
            raise ValueError(length)
        name = data[at : at + length].decode("utf-8", "replace")
        at += length
        (numbers,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        if not 0 <= numbers <= size - at:
            raise ValueError(numbers)
        owned.extend(zip(repeat(name), unpack_from(f">{numbers}i", data, at)))
        at += numbers * _INT32.size
    return owned, at


def write_cooperative(generation: int) -> bytes:
    """The generation of a member with ``cooperative-sticky``, for leaders with clients that read it only here."""
    return _INT32.pack(generation)


def read_cooperative(data: bytes | None) -> int | None:
    if data is None:
        return None
    return _INT32.unpack_from(data)[0] if len(data) >= _INT32.size else UNREADABLE_GENERATION
