"""Kafka's ``range``: each topic's partitions in order, cut into one stretch for each of its subscribers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from penstock.assign.model import Assignment, Group, Member
from penstock.assign.partition_index import Layout, in_member_order, subscribers
from penstock.assign.range_by_rack import cut_by_racks, racks_matter
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class Range:
    """Topics of the same subscribers and size are cut alike, so equal keys meet at one member.

    Where racks are known and tell partitions apart, a member gets partitions with a replica in its own rack first, as
    far as neither the evenness of each topic nor that meeting of keys suffers.
    """

    name: ClassVar[str] = "range"
    cooperates: ClassVar[bool] = False

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        layout = Layout(group)
        readers = subscribers(members, layout.topics)
        with_racks = [topic for topic in layout.topics if group.topics[topic].racks]
        if any(racks_matter(group.topics[topic], _racks(members, readers[topic])) for topic in with_racks):
            shares = cut_by_racks(group, members, readers)
        else:
            shares = _cut(layout, len(members), readers)
        by_id = {member.id: share for member, share in zip(members, shares, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})


def _racks(members: Sequence[Member], seats: Sequence[int]) -> frozenset[str]:
    return frozenset(rack for seat in seats if (rack := members[seat].rack))


def _cut(layout: Layout, members: int, readers: dict[str, tuple[int, ...]]) -> list[list[TopicPartition]]:
    tps = layout.topic_partitions()
    shares: list[list[TopicPartition]] = [[] for _ in range(members)]
    start = 0
    # Neighbouring topics that are cut alike are cut together, since a large group has a million stretches.
    for (seats, count), alike in groupby(layout.topics, key=lambda topic: (readers[topic], layout.counts[topic])):
        end = start + count * len(list(alike))
        length, extra = divmod(count, len(seats))
        at = start
        for seat in range(min(count, len(seats))):
            stretch = length + (seat < extra)
            shares[seats[seat]].extend(_every(tps, at, end, count, stretch))
            at += stretch
        start = end
    return shares


def _every(tps: list[TopicPartition], at: int, end: int, count: int, stretch: int) -> list[TopicPartition]:
    """The stretch that begins there, and the same one of each further topic up to the end."""
    topics = (end - at + count - 1) // count
    if stretch >= topics:
        return [tp for first in range(at, end, count) for tp in tps[first : first + stretch]]
    woven: list[TopicPartition] = [tps[at]] * (topics * stretch)
    for column in range(stretch):
        woven[column::stretch] = tps[at + column : end : count]
    return woven
