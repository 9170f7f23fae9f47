"""Who holds which partition, and who of some members holds the fewest."""

from collections.abc import Iterable
from heapq import heapify, heappush, heapreplace


class Ownership:
    """The owner of each partition, by number, and how many each member has."""

    def __init__(self, members: int, partitions: int) -> None:
        self.owner = [-1] * partitions
        self.sizes = [0] * members

    def take(self, number: int, seat: int) -> None:
        self.owner[number] = seat
        self.sizes[seat] += 1

    def pass_on(self, number: int, seat: int) -> None:
        self.sizes[self.owner[number]] -= 1
        self.take(number, seat)

    def copy(self) -> "Ownership":
        copy = Ownership(0, 0)
        copy.owner, copy.sizes = list(self.owner), list(self.sizes)
        return copy


class Fewest:
    """Finds whoever of these members has the fewest partitions, the first by position among several.

    Entries are sizes and positions as one number. They may be too low, since sizes grow: such a one is corrected when
    it comes to the top. Nobody has only entries that are too high, as long as whoever loses a partition is renewed.
    """

    def __init__(self, seats: Iterable[int], ownership: Ownership) -> None:
        self._hands = ownership
        self._base = len(ownership.sizes)
        self._heap = [ownership.sizes[seat] * self._base + seat for seat in seats]
        heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def seat(self) -> int:
        heap, sizes, base = self._heap, self._hands.sizes, self._base
        while True:
            seat = heap[0] % base
            true = sizes[seat] * base + seat
            if heap[0] == true:
                return seat
            heapreplace(heap, true)

    def renew(self, seat: int) -> None:
        heappush(self._heap, self._hands.sizes[seat] * self._base + seat)
