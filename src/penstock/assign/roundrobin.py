"""Kafka's ``roundrobin``: the partitions of all topics go to the members in turn."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from penstock.assign.model import Assignment, Group
from penstock.assign.partition_index import PartitionIndex, in_member_order, subscribers
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class RoundRobin:
    """One partition to each member in turn, topic after topic; members that do not subscribe to a topic are skipped."""

    name: ClassVar[str] = "roundrobin"
    cooperates: ClassVar[bool] = False

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        layout = PartitionIndex(group)
        tps = layout.topic_partitions()
        readers = subscribers(members, layout.topics)
        ownership: list[list[TopicPartition]] = [[] for _ in members]
        turn, start = 0, 0
        # Successive topics with the same subscribers are handled together.
        for indexes, topics in groupby(layout.topics, key=readers.__getitem__):
            total = sum(layout.counts[topic] for topic in topics)
            end, first = start + total, bisect_left(indexes, turn)
            for offset in range(min(total, len(indexes))):
                ownership[indexes[(first + offset) % len(indexes)]].extend(tps[start + offset : end : len(indexes)])
            turn = indexes[(first + total - 1) % len(indexes)] + 1
            start = end
        by_id = {member.id: share for member, share in zip(members, ownership, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})
