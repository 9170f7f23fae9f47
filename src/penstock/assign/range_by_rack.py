"""Kafka's ``range`` for groups with racks (KIP-881)."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from penstock.assign.model import Group, Member, Topic
from penstock.core.records.record import TopicPartition


def racks_matter(topic: Topic, readers: frozenset[str]) -> bool:
    """Whether the partitions differ in their racks and at least one of these racks has a member."""
    racks = frozenset().union(*topic.racks)
    return not racks.isdisjoint(readers) and any(of_partition != racks for of_partition in topic.racks)


class _TopicDivision:
    """The division of one topic among its subscribers: which partitions are left, and how many each may still get."""

    def __init__(self, name: str, topic: Topic, members: Sequence[Member], indexes: tuple[int, ...]) -> None:
        self.name = name
        self.count = topic.partitions
        self.indexes = indexes
        self.left = dict.fromkeys(range(self.count))
        self._racks = topic.racks
        self._rack_of = {index: members[index].rack for index in indexes}
        self._length, self._extra = divmod(self.count, len(indexes))
        self._given = dict.fromkeys(indexes, 0)
        readers = frozenset(rack for rack in self._rack_of.values() if rack)
        self.has_racks = bool(readers)
        self.matters = racks_matter(topic, readers)

    def near(self, index: int, number: int) -> bool:
        """Whether a replica is in the member's rack; a member without a rack is near to all."""
        rack = self._rack_of[index]
        return not rack or (bool(self._racks) and rack in self._racks[number])

    def may_take(self, index: int, number: int) -> bool:
        return self.near(index, number) and self.room(index) > 0

    def room(self, index: int) -> int:
        """How many partitions the member may still get."""
        return max(0, self._length + (self._extra > 0) - self._given[index])

    def give(self, index: int, numbers: list[int]) -> None:
        self._given[index] += len(numbers)
        if self._given[index] > self._length:
            self._extra -= 1
        for number in numbers:
            del self.left[number]


Give = Callable[[_TopicDivision, int, list[int]], None]


def divide_by_racks(
    group: Group, members: Sequence[Member], readers: dict[str, tuple[int, ...]]
) -> list[list[TopicPartition]]:
    shares: list[list[TopicPartition]] = [[] for _ in members]

    def give(division: _TopicDivision, index: int, numbers: list[int]) -> None:
        division.give(index, numbers)
        shares[index].extend((division.name, number) for number in numbers)

    divisions = [_TopicDivision(name, group.topics[name], members, indexes) for name, indexes in readers.items()]
    alike: defaultdict[tuple[tuple[int, ...], int], list[_TopicDivision]] = defaultdict(list)
    for division in divisions:
        if division.has_racks:
            alike[division.indexes, division.count].append(division)
    for together in alike.values():
        if len(together) > 1:
            _give_near_together(together, give)
        elif together[0].matters:
            _give_in_order(together[0], together[0].near, give)
    for division in divisions:
        _give_in_order(division, lambda _index, _number: True, give)
    return [sorted(share) for share in shares]


def _give_in_order(division: _TopicDivision, may: Callable[[int, int], bool], give: Give) -> None:
    for index in division.indexes:
        room = division.room(index)
        numbers = [number for number in division.left if may(index, number)][:room]
        if numbers:
            give(division, index, numbers)


def _give_near_together(divisions: list[_TopicDivision], give: Give) -> None:
    """Give the partitions of all topics with the same number to one member, if it is near to all of them."""
    waiting = dict.fromkeys(divisions[0].indexes)
    for number in range(divisions[0].count):
        taker = next((index for index in waiting if all(each.may_take(index, number) for each in divisions)), None)
        if taker is None:
            continue
        for division in divisions:
            give(division, taker, [number])
        if not any(division.room(taker) > 0 for division in divisions):
            del waiting[taker]
