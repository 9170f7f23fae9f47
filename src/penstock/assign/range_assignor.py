"""Kafka's ``range``: divides the partitions of each topic into contiguous ranges, one for each subscriber."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from penstock.assign.model import Assignment, Group, Member
from penstock.assign.partition_index import PartitionIndex, in_member_order, subscribers
from penstock.assign.range_by_rack import divide_by_racks, racks_matter
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class Range:
    """Topics with the same subscribers and number of partitions are divided alike, so one member gets a key of both.

    If partitions differ in their racks, a member first gets partitions with a replica in its own rack, as far as each
    topic stays balanced and topics stay divided alike.
    """

    name: ClassVar[str] = "range"
    cooperates: ClassVar[bool] = False

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        layout = PartitionIndex(group)
        readers = subscribers(members, layout.topics)
        with_racks = [topic for topic in layout.topics if group.topics[topic].racks]
        if any(racks_matter(group.topics[topic], _racks(members, readers[topic])) for topic in with_racks):
            shares = divide_by_racks(group, members, readers)
        else:
            shares = _divide(layout, len(members), readers)
        by_id = {member.id: share for member, share in zip(members, shares, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})


def _racks(members: Sequence[Member], indexes: Sequence[int]) -> frozenset[str]:
    return frozenset(rack for index in indexes if (rack := members[index].rack))


def _divide(layout: PartitionIndex, members: int, readers: dict[str, tuple[int, ...]]) -> list[list[TopicPartition]]:
    tps = layout.topic_partitions()
    shares: list[list[TopicPartition]] = [[] for _ in range(members)]
    start = 0
    # Successive topics that are divided alike are handled together, because a large group has a million ranges.
    for (indexes, count), alike in groupby(layout.topics, key=lambda topic: (readers[topic], layout.counts[topic])):
        end = start + count * len(list(alike))
        length, extra = divmod(count, len(indexes))
        at = start
        for index in range(min(count, len(indexes))):
            size = length + (index < extra)
            shares[indexes[index]].extend(_same_range(tps, at, end, count, size))
            at += size
        start = end
    return shares


def _same_range(tps: list[TopicPartition], at: int, end: int, count: int, size: int) -> list[TopicPartition]:
    """The range of this size that starts at ``at``, and the same range of each following topic up to ``end``.

    ``count`` is the number of partitions of each topic. It copies whole slices, along the longer dimension.
    """
    topics = (end - at + count - 1) // count
    if size >= topics:
        return [tp for first in range(at, end, count) for tp in tps[first : first + size]]
    share: list[TopicPartition] = [tps[at]] * (topics * size)
    for column in range(size):
        share[column::size] = tps[at + column : end : count]
    return share
