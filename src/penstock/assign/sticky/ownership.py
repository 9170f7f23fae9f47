"""The owner of each partition, and which of some members owns the fewest partitions."""

from collections.abc import Iterable
from heapq import heapify, heappush, heapreplace


class Ownership:
    """The index of the member that owns each partition (-1: nobody), and how many partitions each member has."""

    def __init__(self, members: int, partitions: int) -> None:
        self.owner = [-1] * partitions
        self.sizes = [0] * members

    def take(self, number: int, index: int) -> None:
        self.owner[number] = index
        self.sizes[index] += 1

    def pass_on(self, number: int, index: int) -> None:
        self.sizes[self.owner[number]] -= 1
        self.take(number, index)

    def copy(self) -> "Ownership":
        copy = Ownership(0, 0)
        copy.owner, copy.sizes = list(self.owner), list(self.sizes)
        return copy


class Fewest:
    """A heap that finds the member with the fewest partitions; among several, the one with the lowest index.

    An entry is one number made of a member's size and index. When a member gets partitions, its entry becomes too low;
    ``find`` corrects it when it reaches the top. When a member loses a partition, the caller must call ``renew``, or
    its entry would stay too high.
    """

    def __init__(self, indexes: Iterable[int], ownership: Ownership) -> None:
        self._ownership = ownership
        self._base = len(ownership.sizes)
        self._heap = [ownership.sizes[index] * self._base + index for index in indexes]
        heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def find(self) -> int:
        heap, sizes, base = self._heap, self._ownership.sizes, self._base
        while True:
            index = heap[0] % base
            true = sizes[index] * base + index
            if heap[0] == true:
                return index
            heapreplace(heap, true)

    def renew(self, index: int) -> None:
        heappush(self._heap, self._ownership.sizes[index] * self._base + index)
