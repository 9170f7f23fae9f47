"""Remembers which partitions moved between which members, so that two partitions of a topic are not swapped."""

from penstock.assign.java_order import PartitionSet
from penstock.assign.partition_index import PartitionIndex

Pair = tuple[int, int]


class Movements:
    """For each topic: if one partition moved from A to B and another is to move from B to A, the first moves back."""

    def __init__(self, layout: PartitionIndex) -> None:
        self._layout = layout
        self._pair_of: dict[int, Pair] = {}
        self._by_topic: dict[str, dict[Pair, PartitionSet]] = {}

    def better(self, topic: str, number: int, old: int, new: int) -> int:
        """The partition to move instead of this one: one that moved the opposite way before, if there is any."""
        pairs = self._by_topic.get(topic)
        if not pairs:
            return number
        if number in self._pair_of:
            old = self._pair_of[number][0]
        came = pairs.get((new, old))
        return number if came is None else self._layout.starts[topic] + came.first()

    def add(self, topic: str, number: int, old: int, new: int) -> None:
        earlier = self._forget(topic, number)
        source = earlier[0] if earlier else old
        if source == new:
            return
        pair = (source, new)
        self._pair_of[number] = pair
        pairs = self._by_topic.setdefault(topic, {})
        if pair not in pairs:
            pairs[pair] = PartitionSet(topic)
        pairs[pair].add(number - self._layout.starts[topic])

    def _forget(self, topic: str, number: int) -> Pair | None:
        pair = self._pair_of.pop(number, None)
        if pair is not None:
            moved = self._by_topic[topic][pair]
            moved.remove(number - self._layout.starts[topic])
            if not moved:
                del self._by_topic[topic][pair]
        return pair
