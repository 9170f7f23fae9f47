"""Moving partitions from members with many to members with few, until nothing more can be gained."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from penstock.assign.partition_index import Layout
from penstock.assign.sticky.movements import Movements
from penstock.assign.sticky.ownership import Fewest, Ownership


class Balancing:
    """Works on topics with two subscribers or more; a partition goes to the subscriber that has the fewest.

    One that was claimed by a member of an older generation goes back there instead, where that helps too.
    """

    def __init__(
        self,
        ownership: Ownership,
        layout: Layout,
        topic_of: Sequence[str],
        readers: Mapping[str, tuple[int, ...]],
        stale: Mapping[int, int],
    ) -> None:
        self._hands = ownership
        self._topic_of = topic_of
        self._movements = Movements(layout)
        self._fewest: dict[str, Fewest] = {}
        self._of_seat: defaultdict[int, list[Fewest]] = defaultdict(list)
        shared: dict[tuple[int, ...], Fewest] = {}
        for topic, seats in readers.items():
            if seats not in shared:
                shared[seats] = Fewest(seats, ownership)
                for seat in seats:
                    self._of_seat[seat].append(shared[seats])
            self._fewest[topic] = shared[seats]
        self._stale = {number: seat for number, seat in stale.items() if seat in readers.get(topic_of[number], ())}

    def even_out(self, numbers: Iterable[int]) -> bool:
        """Go through these partitions until none of them has to move any more; returns whether any has moved."""
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
        sizes = self._hands.sizes
        bar = sizes[self._hands.owner[number]] - 1
        earlier = self._stale.get(number)
        if earlier is not None and sizes[earlier] < bar:
            return earlier
        fewest = self._fewest[self._topic_of[number]].seat()
        return fewest if sizes[fewest] < bar else None

    def _move(self, number: int, target: int) -> None:
        topic = self._topic_of[number]
        number = self._movements.better(topic, number, self._hands.owner[number], target)
        old = self._hands.owner[number]
        self._movements.add(topic, number, old, target)
        self._hands.pass_on(number, target)
        for fewest in self._of_seat[old]:
            fewest.renew(old)
