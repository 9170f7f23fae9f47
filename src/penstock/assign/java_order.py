"""The orders in which Java compares strings and iterates over a ``HashMap``.

The sticky assignors need it: in Kafka's Java client, the iteration order of a ``HashMap`` decides ties, such as which
member keeps one partition more. Groups may mix Java and Penstock members, and any of them may lead, so Penstock must
compute the same assignment. (The placement of groups in ``__consumer_offsets`` is in ``core/progress/commit_log.py``.)
"""

from collections.abc import Iterable, Sequence

from penstock.core.records.java_hash import text_hash, utf16

_SMALLEST_TABLE = 16
_LOAD = 0.75
_BITS = 0xFFFFFFFF


def table_size(entries: int) -> int:
    """The number of buckets of a ``HashMap`` to which this many entries were added one by one."""
    size = _SMALLEST_TABLE
    while entries > size * _LOAD:
        size *= 2
    return size


def bucket(code: int, size: int) -> int:
    return (code ^ (code >> 16)) & (size - 1)


def hash_order(texts: Sequence[str]) -> list[int]:
    """The indexes of the texts in the iteration order of a ``HashMap`` to which they were added one by one."""
    size = table_size(len(texts))
    return sorted(range(len(texts)), key=lambda at: bucket(text_hash(texts[at]), size))


class PartitionSet:
    """A set of partition numbers of one topic; ``first`` returns the one that Java's ``HashSet`` would return first."""

    def __init__(self, topic: str) -> None:
        self._seed = text_hash(topic)
        self._numbers: dict[int, None] = {}
        self._most = 0  # a HashSet never shrinks

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
