"""Which delivered offsets of one partition are finished, and so up to where it may be committed."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from penstock.core.progress.offset_map import Range

# Finished offsets are kept until this many can be dropped at once, so that dropping them costs nothing per record.
_TRIM_AT = 4096
_FINISHED = b"\x01"


class Tracker:
    """Delivered offsets in order, each with a mark: finished or not.

    Offsets that were never delivered (compaction, transaction markers, a log that starts late) are not in here at all,
    so they hold nothing back and cost no memory, however wide the gap. ``start`` is the offset that fetching
    starts at: the committed one, or None where Kafka picks it. ``finished`` are ranges above it that an earlier epoch
    finished already, from the commit's offset map.
    """

    __slots__ = ("_head", "_marks", "_next", "_offsets", "_restored", "unfinished")

    def __init__(self, start: int | None = None, finished: Sequence[Range] = ()) -> None:
        self._offsets = array("q")
        self._marks = bytearray()
        self._head = 0  # index of the lowest offset that may still be unfinished
        self._next = start  # where a commit stands when nothing is unfinished
        self._restored = list(finished)
        self.unfinished = 0
        self._skip_restored()

    def deliver(self, offsets: Sequence[int]) -> Sequence[int]:
        """These offsets came, ascending and all above the ones before; returns those still to be handled."""
        if not offsets:
            return offsets
        fresh = [offset for offset in offsets if not self._is_restored(offset)] if self._restored else offsets
        if fresh:
            if (self._next is not None and fresh[0] < self._next) or not _ascend(fresh):
                raise ValueError(f"offsets {fresh[0]}..{fresh[-1]} do not ascend from {self._next}")
            self._offsets.extend(array("q", fresh))  # an array is taken over as it is, a list one by one
            self._marks.extend(bytes(len(fresh)))
            self.unfinished += len(fresh)
        self.reach(offsets[-1] + 1)
        return fresh

    def reach(self, offset: int) -> None:
        """The partition was read up to here: what lies below and was not delivered does not exist, or is finished."""
        if self._next is None or offset > self._next:
            self._next = offset
            self._skip_restored()
        self._forget_restored(below=offset)

    def retract(self, offset: int) -> None:
        """Take back the delivery of this offset and all above it, none of which is finished: they will come again."""
        index = self._index(offset)
        if any(self._marks[index:]):
            raise ValueError(f"some offset from {offset} on is finished already")
        self.unfinished -= len(self._offsets) - index
        del self._offsets[index:]
        del self._marks[index:]
        self._next = offset

    def finish(self, offset: int) -> None:
        index = self._index(offset)
        if self._marks[index]:
            raise ValueError(f"offset {offset} is finished already")
        self._marks[index] = 1
        self.unfinished -= 1

    def finish_all(self, offsets: Sequence[int]) -> None:
        """As ``finish`` for each, in any order, and much faster where nothing is missing between them."""
        marks, known = self._marks, self._offsets
        if not offsets or not known or known[-1] - known[0] != len(known) - 1:
            for offset in offsets:
                self.finish(offset)
            return
        base = known[0]
        low, high = (offsets[0], offsets[-1]) if isinstance(offsets, range) else (min(offsets), max(offsets))
        if low < base + self._head or high > known[-1]:
            raise ValueError(f"of offsets {low}..{high} some were not delivered, or are committed")
        # Counting marks before and after says what a look at each would, and costs next to nothing.
        finished = marks.count(1)
        if isinstance(offsets, range):
            marks[offsets[0] - base : offsets[-1] + 1 - base] = _FINISHED * len(offsets)
        else:
            for offset in offsets:
                marks[offset - base] = 1
        if marks.count(1) != finished + len(offsets):
            raise ValueError(f"of offsets {low}..{high} some are finished already")
        self.unfinished -= len(offsets)

    def is_unfinished(self, offset: int) -> bool:
        """Whether this offset was delivered and is not finished yet."""
        index = bisect_left(self._offsets, offset, self._head)
        return index < len(self._offsets) and self._offsets[index] == offset and not self._marks[index]

    @property
    def commit_point(self) -> int | None:
        """The lowest unfinished offset; the next one to come if all are finished; None if nothing is known yet."""
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
        """The position, and what an earlier epoch finished above it; None if nothing is known yet."""
        if self._next is None:
            return None
        return self._next, self._restored[bisect_right(self._restored, self._next, key=_start) :]

    @property
    def position(self) -> int | None:
        """The offset that comes next; None if nothing is known yet."""
        return self._next

    def finished_ranges(self) -> list[Range]:
        """The finished ranges above the commit point, ascending and apart; what does not exist counts as finished."""
        if self._next is None:
            return []
        holes, index = [], self._marks.find(0, self._head)
        while index >= 0:
            holes.append(self._offsets[index])
            index = self._marks.find(0, index + 1)
        # Between two unfinished offsets everything is finished or does not exist.
        ends = [*holes[1:], self._next] if holes else []
        ranges = [(hole + 1, end) for hole, end in zip(holes, ends, strict=True) if end > hole + 1]
        return ranges + self._restored[bisect_right(self._restored, self._next, key=_start) :]

    def count_finished_ranges(self) -> int:
        """How many ``finished_ranges`` there are, without making them."""
        marks, known = self._marks, self._offsets
        if (
            not known
            or self._next is None
            or self._restored
            or self._next - known[self._head] != len(known) - self._head
        ):
            return len(self.finished_ranges())
        # With nothing missing between them, each begins where a finished offset follows one that is not.
        return marks.count(b"\x00\x01", self._head)

    def highest_finished(self) -> int:
        """The highest offset that was delivered and finished, as far as that is still known; -1 if none."""
        index = self._marks.rfind(1)
        return self._offsets[index] if index >= 0 else -1

    def _is_restored(self, offset: int) -> bool:
        """Whether an earlier epoch finished this offset."""
        index = bisect_right(self._restored, offset, key=_start) - 1
        return index >= 0 and offset < self._restored[index][1]

    def _forget_restored(self, *, below: int) -> None:
        """Ranges that have passed by. Not before: a commit may stand behind one whose offsets are still to come."""
        while self._restored and self._restored[0][1] <= below:
            del self._restored[0]

    def _skip_restored(self) -> None:
        """Where delivery stands inside a restored range, what must be handled next is behind it."""
        if self._restored and self._next is not None and self._is_restored(self._next):
            self._next = self._restored[bisect_right(self._restored, self._next, key=_start) - 1][1]

    def _index(self, offset: int) -> int:
        offsets, head = self._offsets, self._head
        if head < len(offsets):
            # Without gaps the place is known at once; a search is needed only behind one.
            index = head + offset - offsets[head]
            if not (head <= index < len(offsets) and offsets[index] == offset):
                index = bisect_left(offsets, offset, head)
            if index < len(offsets) and offsets[index] == offset:
                return index
        raise ValueError(f"offset {offset} was not delivered, or was committed already")


def _start(finished: Range) -> int:
    return finished[0]


def _ascend(offsets: Sequence[int]) -> bool:
    first = offsets[0]
    # Without gaps, as nearly always, one comparison of lists says so at once.
    return offsets == list(range(first, first + len(offsets))) or all(a < b for a, b in pairwise(offsets))
