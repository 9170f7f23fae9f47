"""Numbers all partitions of a group from 0, topic by topic, so that a million partitions cost only a million integers.

In this package, an ``index`` is the position of a member in a list of members, and a ``number`` is such a number of a
partition.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat

from penstock.assign.java_order import in_java_order
from penstock.assign.model import Group, Member, Topic
from penstock.core.records.java_hash import utf16
from penstock.core.records.record import TopicPartition


class PartitionIndex:
    """The topics to assign, in a fixed order, and the numbers of their partitions."""

    def __init__(self, group: Group, order: Sequence[str] | None = None) -> None:
        self.topics = assignable(group) if order is None else order
        self.starts: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.total = 0
        self._within: list[int] = []
        for name in self.topics:
            count = group.topics[name].partitions
            self.starts[name] = self.total
            self.counts[name] = count
            self.total += count

    def topic_partitions(self) -> list[TopicPartition]:
        tps: list[TopicPartition] = []
        for name in self.topics:
            tps.extend(zip(repeat(name), range(self.counts[name])))
        return tps

    def numbers(self, tps: Iterable[TopicPartition]) -> list[int]:
        """The numbers of those of the partitions that exist."""
        starts, counts = self.starts, self.counts
        return [starts[name] + number for name, number in tps if name in counts and 0 <= number < counts[name]]

    def within_topic(self) -> list[int]:
        """The number of each partition within its topic."""
        if not self._within:
            self._within = [number for name in self.topics for number in range(self.counts[name])]
        return self._within


def assignable(group: Group) -> list[str]:
    """Topics that exist, have partitions and have at least one subscriber."""
    wanted: set[str] = set()
    for topics in {member.topics for member in group.members}:
        wanted.update(topics)
    return in_java_order(name for name in wanted if name in group.topics and group.topics[name].partitions)


def in_member_order(members: Iterable[Member]) -> list[Member]:
    """Static members first, by their static ids, then the others by their ids: the order of range and roundrobin."""
    return sorted(members, key=_rank)


def _rank(member: Member) -> tuple[bool, bytes]:
    static = member.static_id
    return static is None, utf16(member.id if static is None else static)


def racks_of(topic: Topic, number: int) -> frozenset[str]:
    return topic.racks[number] if topic.racks else frozenset()


def subscribers(members: Sequence[Member], topics: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The indexes of each topic's subscribers in ``members``; topics with the same subscribers share one tuple."""
    if len({frozenset(names) for names in {member.topics for member in members}}) == 1:
        return dict.fromkeys(topics, tuple(range(len(members))))
    found: dict[str, list[int]] = {topic: [] for topic in topics}
    for index, member in enumerate(members):
        for topic in member.topics:
            if topic in found:
                found[topic].append(index)
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    return {topic: shared.setdefault(tuple(indexes), tuple(indexes)) for topic, indexes in found.items()}
