"""Kafka's ``range`` with racks (KIP-881)."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from penstock.assign.model import Group, Member, Topic
from penstock.core.records.record import TopicPartition


def racks_matter(topic: Topic, readers: frozenset[str]) -> bool:
    """Whether partitions differ in their racks, and any of those is one of the readers'."""
    racks = frozenset().union(*topic.racks)
    return not racks.isdisjoint(readers) and any(of_partition != racks for of_partition in topic.racks)


class _Cut:
    """One topic on its way to its subscribers."""

    def __init__(self, name: str, topic: Topic, members: Sequence[Member], seats: tuple[int, ...]) -> None:
        self.name = name
        self.count = topic.partitions
        self.seats = seats
        self.left = dict.fromkeys(range(self.count))
        self._racks = topic.racks
        self._rack_of = {seat: members[seat].rack for seat in seats}
        self._length, self._extra = divmod(self.count, len(seats))
        self._given = dict.fromkeys(seats, 0)
        readers = frozenset(rack for rack in self._rack_of.values() if rack)
        self.has_racks = bool(readers)
        self.matters = racks_matter(topic, readers)

    def near(self, seat: int, number: int) -> bool:
        """Whether a replica is in the member's rack; a member without one is near to all."""
        rack = self._rack_of[seat]
        return not rack or (bool(self._racks) and rack in self._racks[number])

    def room(self, seat: int) -> int:
        return max(0, self._length + (self._extra > 0) - self._given[seat])

    def give(self, seat: int, numbers: list[int]) -> None:
        self._given[seat] += len(numbers)
        if self._given[seat] > self._length:
            self._extra -= 1
        for number in numbers:
            del self.left[number]


Give = Callable[[_Cut, int, list[int]], None]


def cut_by_racks(
    group: Group, members: Sequence[Member], readers: dict[str, tuple[int, ...]]
) -> list[list[TopicPartition]]:
    shares: list[list[TopicPartition]] = [[] for _ in members]

    def give(cut: _Cut, seat: int, numbers: list[int]) -> None:
        cut.give(seat, numbers)
        shares[seat].extend((cut.name, number) for number in numbers)

    cuts = [_Cut(name, group.topics[name], members, seats) for name, seats in readers.items()]
    alike: defaultdict[tuple[tuple[int, ...], int], list[_Cut]] = defaultdict(list)
    for cut in cuts:
        if cut.has_racks:
            alike[cut.seats, cut.count].append(cut)
    for together in alike.values():
        if len(together) > 1:
            _give_near_together(together, give)
        elif together[0].matters:
            _give_in_order(together[0], together[0].near, give)
    for cut in cuts:
        _give_in_order(cut, lambda _seat, _number: True, give)
    return [sorted(share) for share in shares]


def _give_in_order(cut: _Cut, may: Callable[[int, int], bool], give: Give) -> None:
    for seat in cut.seats:
        room = cut.room(seat)
        numbers = [number for number in cut.left if may(seat, number)][:room]
        if numbers:
            give(cut, seat, numbers)


def _give_near_together(cuts: list[_Cut], give: Give) -> None:
    """The same number of every topic to one member, if it is near to all of them."""
    waiting = dict.fromkeys(cuts[0].seats)
    for number in range(cuts[0].count):
        taker = next(
            (seat for seat in waiting if all(cut.near(seat, number) and cut.room(seat) > 0 for cut in cuts)), None
        )
        if taker is None:
            continue
        for cut in cuts:
            give(cut, taker, [number])
        if not any(cut.room(taker) > 0 for cut in cuts):
            del waiting[taker]
