"""Kafka's ``roundrobin``: the partitions of all topics are dealt like cards."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from penstock.assign.model import Assignment, Group
from penstock.assign.partition_index import Layout, in_member_order, subscribers
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class RoundRobin:
    """One partition to each member in turn, topic after topic; who does not subscribe to a topic is passed over."""

    name: ClassVar[str] = "roundrobin"
    cooperates: ClassVar[bool] = False

    def assign(self, group: Group) -> Assignment:
        members = in_member_order(group.members)
        layout = Layout(group)
        tps = layout.topic_partitions()
        players = subscribers(members, layout.topics)
        ownership: list[list[TopicPartition]] = [[] for _ in members]
        turn, start = 0, 0
        # Neighbouring topics with the same players are one pile of cards.
        for seats, topics in groupby(layout.topics, key=players.__getitem__):
            pile = sum(layout.counts[topic] for topic in topics)
            end, first = start + pile, bisect_left(seats, turn)
            for card in range(min(pile, len(seats))):
                ownership[seats[(first + card) % len(seats)]].extend(tps[start + card : end : len(seats)])
            turn = seats[(first + pile - 1) % len(seats)] + 1
            start = end
        by_id = {member.id: hand for member, hand in zip(members, ownership, strict=True)}
        return Assignment({member.id: by_id[member.id] for member in group.members})
