"""Moves partitions from members with many to members with few, until no move improves the balance."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from penstock.assign.partition_index import PartitionIndex
from penstock.assign.sticky.movements import Movements
from penstock.assign.sticky.ownership import Fewest, Ownership


class Balancing:
    """Handles topics with at least two subscribers: a partition moves to the subscriber with the fewest partitions.

    A partition that a member of an older generation claimed moves back to that member, if this also helps.
    """

    def __init__(
        self,
        ownership: Ownership,
        layout: PartitionIndex,
        topic_of: Sequence[str],
        readers: Mapping[str, tuple[int, ...]],
        stale: Mapping[int, int],
    ) -> None:
        self._ownership = ownership
        self._topic_of = topic_of
        self._movements = Movements(layout)
        self._fewest: dict[str, Fewest] = {}
        self._heaps_of: defaultdict[int, list[Fewest]] = defaultdict(list)
        shared: dict[tuple[int, ...], Fewest] = {}
        for topic, indexes in readers.items():
            if indexes not in shared:
                shared[indexes] = Fewest(indexes, ownership)
                for index in indexes:
                    self._heaps_of[index].append(shared[indexes])
            self._fewest[topic] = shared[indexes]
        self._stale = {number: index for number, index in stale.items() if index in readers.get(topic_of[number], ())}

    def even_out(self, numbers: Iterable[int]) -> bool:
        """Visit these partitions until none of them has to move any more; returns whether any has moved."""
        numbers = [number for number in numbers if self._topic_of[number] in self._fewest]
        moved_any, moved = False, True
        while moved:
            moved = False
            for number in numbers:
                target = self._target(number)
                if target is not None:
                    self._move(number, target)
                    moved_any = moved = True
        return moved_any

    def _target(self, number: int) -> int | None:
        sizes = self._ownership.sizes
        limit = sizes[self._ownership.owner[number]] - 1  # a move helps only if the target has fewer than this
        earlier = self._stale.get(number)
        if earlier is not None and sizes[earlier] < limit:
            return earlier
        fewest = self._fewest[self._topic_of[number]].find()
        return fewest if sizes[fewest] < limit else None

    def _move(self, number: int, target: int) -> None:
        topic = self._topic_of[number]
        number = self._movements.better(topic, number, self._ownership.owner[number], target)
        old = self._ownership.owner[number]
        self._movements.add(topic, number, old, target)
        self._ownership.pass_on(number, target)
        for fewest in self._heaps_of[old]:
            fewest.renew(old)
