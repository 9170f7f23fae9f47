"""The orders in which Java compares texts and walks through hash tables.

Kafka's sticky assignors let the order of a ``HashMap`` decide between equals: who keeps one partition more, or which of
several partitions moves back. A group with members of both kinds needs one answer, so these orders are part of it.
"""

from collections.abc import Iterable, Sequence

from penstock.core.records.java_hash import text_hash, utf16

_SMALLEST_TABLE = 16
_LOAD = 0.75
_BITS = 0xFFFFFFFF


def table_size(entries: int) -> int:
    """How many buckets a table has that grew one entry at a time."""
    size = _SMALLEST_TABLE
    while entries > size * _LOAD:
        size *= 2
    return size


def bucket(code: int, size: int) -> int:
    return (code ^ (code >> 16)) & (size - 1)


def hash_order(texts: Sequence[str]) -> list[int]:
    """The positions of the texts in the order in which a ``HashMap`` that got them one by one walks through them."""
    size = table_size(len(texts))
    return sorted(range(len(texts)), key=lambda at: bucket(text_hash(texts[at]), size))


class PartitionSet:
    """Partition numbers of one topic, of which the first is the one that a ``HashSet`` of them would name first."""

    def __init__(self, topic: str) -> None:
        self._seed = text_hash(topic)
        self._numbers: dict[int, None] = {}
        self._most = 0  # a table never shrinks

    def add(self, number: int) -> None:
        self._numbers[number] = None
        self._most = max(self._most, len(self._numbers))

    def remove(self, number: int) -> None:
        del self._numbers[number]

    def __len__(self) -> int:
        return len(self._numbers)

    def first(self) -> int:
        size = table_size(self._most)
        return min(self._numbers, key=lambda number: bucket(((31 + number) * 31 + self._seed) & _BITS, size))


def in_java_order(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=utf16)
