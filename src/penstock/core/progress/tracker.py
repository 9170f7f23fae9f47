"""Which delivered offsets of one partition are finished, and therefore which offset may be committed."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from penstock.core.progress.offset_map import Range

# Finished offsets are dropped this many at a time, so that dropping them costs next to nothing per record.
_TRIM_AT = 4096
_FINISHED = b"\x01"
# To count so many marks takes as long as to test one.
_FAR_APART = 20


class Tracker:
    """The delivered offsets in order, each with a mark: finished or not.

    Offsets that are never delivered (compaction, transaction markers, a log whose start moved) are not stored. They
    neither hold back the commit point nor cost memory, however wide the gap. ``start`` is the offset from which we
    fetch: the committed offset, or None if Kafka chooses it. ``finished`` are the "restored" ranges: offsets above
    ``start`` that an earlier epoch has finished, from the commit's offset map.
    """

    __slots__ = ("_head", "_marks", "_next", "_offsets", "_restored", "unfinished")

    def __init__(self, start: int | None = None, finished: Sequence[Range] = ()) -> None:
        self._offsets = array("q")
        self._marks = bytearray()
        self._head = 0  # index of the lowest offset that may still be unfinished
        self._next = start  # the commit point if nothing is unfinished
        self._restored = list(finished)
        self.unfinished = 0
        self._skip_restored()

    def deliver(self, offsets: Sequence[int]) -> Sequence[int]:
        """Add fetched offsets, ascending and above all earlier ones; returns those that still have to be handled."""
        if not offsets:
            return offsets
        fresh = [offset for offset in offsets if not self._is_restored(offset)] if self._restored else offsets
        if fresh:
            if (self._next is not None and fresh[0] < self._next) or not _ascend(fresh):
                raise ValueError(f"offsets {fresh[0]}..{fresh[-1]} do not ascend from {self._next}")
            if len(fresh) == 1:  # at a low rate, nearly always
                self._offsets.append(fresh[0])
                self._marks.append(0)
            else:
                self._offsets.extend(array("q", fresh))  # copies memory; a list would be added one by one
                self._marks.extend(bytes(len(fresh)))
            self.unfinished += len(fresh)
        self.reach(offsets[-1] + 1)
        return fresh

    def reach(self, offset: int) -> None:
        """We have fetched up to here: offsets below that were not delivered do not exist or are finished."""
        if self._next is None or offset > self._next:
            self._next = offset
            if self._restored:
                self._skip_restored()
        if self._restored:
            self._forget_restored(below=offset)

    def retract(self, offset: int) -> None:
        """Remove this offset and all above it, none of which is finished: we will fetch them again."""
        index = self._index(offset)
        if any(self._marks[index:]):
            raise ValueError(f"an offset at or above {offset} is already finished")
        self.unfinished -= len(self._offsets) - index
        del self._offsets[index:]
        del self._marks[index:]
        self._next = offset

    def finish(self, offset: int) -> None:
        index = self._index(offset)
        if self._marks[index]:
            raise ValueError(f"offset {offset} is already finished")
        self._marks[index] = 1
        self.unfinished -= 1

    def finish_all(self, offsets: Sequence[int]) -> None:
        """As ``finish`` for each of them, in any order; much faster if the delivered offsets have no gaps."""
        marks, known = self._marks, self._offsets
        if not offsets or not known or known[-1] - known[0] != len(known) - 1:
            for offset in offsets:
                self.finish(offset)
            return
        base = known[0]
        low, high = (offsets[0], offsets[-1]) if isinstance(offsets, range) else (min(offsets), max(offsets))
        if low < base + self._head or high > known[-1]:
            raise ValueError(f"some of the offsets {low}..{high} were not delivered, or are already committed")
        first, end = low - base, high + 1 - base
        if end - first > _FAR_APART * len(offsets):
            for offset in offsets:
                if marks[offset - base]:
                    raise ValueError(f"offset {offset} is already finished")
                marks[offset - base] = 1
            self.unfinished -= len(offsets)
            return
        # Comparing the number of marks before and after detects double finishes, and is much faster than testing each.
        finished = marks.count(1, first, end)
        if isinstance(offsets, range):
            marks[first:end] = _FINISHED * len(offsets)
        else:
            for offset in offsets:
                marks[offset - base] = 1
        if marks.count(1, first, end) != finished + len(offsets):
            raise ValueError(f"some of the offsets {low}..{high} are already finished")
        self.unfinished -= len(offsets)

    def is_unfinished(self, offset: int) -> bool:
        """Whether this offset was delivered and is not finished."""
        index = bisect_left(self._offsets, offset, self._head)
        return index < len(self._offsets) and self._offsets[index] == offset and not self._marks[index]

    def unfinished_below(self, offset: int) -> int:
        """How many delivered offsets below this one are not finished."""
        return self._marks.count(0, self._head, bisect_left(self._offsets, offset, self._head))

    @property
    def commit_point(self) -> int | None:
        """The lowest unfinished offset; the next offset to fetch if all are finished; None if that is unknown yet."""
        index = self._marks.find(0, self._head)
        if index < 0:
            self._offsets, self._marks, self._head = array("q"), bytearray(), 0
            return self._next
        self._head = index
        point = self._offsets[index]
        if index >= _TRIM_AT:
            del self._offsets[:index]
            del self._marks[:index]
            self._head = 0
        return point

    def ahead(self) -> tuple[int, list[Range]] | None:
        """The position and the restored ranges above it, for at-most-once commits; None if the position is unknown."""
        if self._next is None:
            return None
        return self._next, self._restored[bisect_right(self._restored, self._next, key=_start) :]

    @property
    def position(self) -> int | None:
        """The next offset to fetch; None if it is unknown yet."""
        return self._next

    def finished_ranges(self) -> list[Range]:
        """The finished ranges above the commit point, ascending; offsets that do not exist count as finished."""
        if self._next is None:
            return []
        unfinished, index = [], self._marks.find(0, self._head)
        while index >= 0:
            unfinished.append(self._offsets[index])
            index = self._marks.find(0, index + 1)
        # Every offset between two unfinished ones is finished or does not exist.
        ends = [*unfinished[1:], self._next] if unfinished else []
        ranges = [(offset + 1, end) for offset, end in zip(unfinished, ends, strict=True) if end > offset + 1]
        return ranges + self._restored[bisect_right(self._restored, self._next, key=_start) :]

    def count_finished_ranges(self) -> int:
        """The length of ``finished_ranges()``, mostly without building the list."""
        marks, known = self._marks, self._offsets
        if (
            not known
            or self._next is None
            or self._restored
            or self._next - known[self._head] != len(known) - self._head
        ):
            return len(self.finished_ranges())
        # Without gaps, each range starts where a finished offset follows an unfinished one.
        return marks.count(b"\x00\x01", self._head)

    def highest_finished(self) -> int:
        """The highest finished offset that is still stored; -1 if there is none."""
        index = self._marks.rfind(1)
        return self._offsets[index] if index >= 0 else -1

    def _is_restored(self, offset: int) -> bool:
        """Whether an earlier epoch finished this offset."""
        index = bisect_right(self._restored, offset, key=_start) - 1
        return index >= 0 and offset < self._restored[index][1]

    def _forget_restored(self, *, below: int) -> None:
        """Drop restored ranges that end at or below this offset; those above are not fetched yet and still needed."""
        while self._restored and self._restored[0][1] <= below:
            del self._restored[0]

    def _skip_restored(self) -> None:
        """If the position is inside a restored range, move it to the end of that range."""
        if self._restored and self._next is not None and self._is_restored(self._next):
            self._next = self._restored[bisect_right(self._restored, self._next, key=_start) - 1][1]

    def _index(self, offset: int) -> int:
        offsets, head = self._offsets, self._head
        if head < len(offsets):
            # Without gaps the index follows from the offset; only after a gap is a search needed.
            index = head + offset - offsets[head]
            if not (head <= index < len(offsets) and offsets[index] == offset):
                index = bisect_left(offsets, offset, head)
            if index < len(offsets) and offsets[index] == offset:
                return index
        raise ValueError(f"offset {offset} was not delivered, or is already committed")


def _start(finished: Range) -> int:
    return finished[0]


def _ascend(offsets: Sequence[int]) -> bool:
    first, count = offsets[0], len(offsets)
    # Nearly always there are no gaps, and a single comparison of two lists is enough.
    return count == 1 or offsets == list(range(first, first + count)) or all(a < b for a, b in pairwise(offsets))
