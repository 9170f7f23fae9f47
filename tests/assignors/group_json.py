"""Writes groups as JSON for the Java program, and reads its answers."""

import json
from dataclasses import dataclass

from penstock.assign import Group
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class Answer:
    """The answer of a Java assignor: partitions by member, or its error.

    ``swayed`` is true if another order of the members leads to another answer.
    """

    partitions: dict[str, list[TopicPartition]]
    error: str
    swayed: bool


def question(group: Group, assignors: list[str], orders: int) -> str:
    topics: dict[str, list[list[str]]] = {
        name: [sorted(racks) for racks in topic.racks] if topic.racks else [[]] * topic.partitions
        for name, topic in group.topics.items()
    }
    members = [
        {
            "id": member.id,
            "topics": member.topics,
            "static": member.static_id,
            "rack": member.rack,
            "owned": member.owned,
            "generation": member.generation,
            "data": None if member.user_data is None else member.user_data.hex(),
        }
        for member in group.members
    ]
    return json.dumps({"assignors": assignors, "orders": orders, "topics": topics, "members": members})


def answers(line: str) -> dict[str, Answer]:
    return {
        name: Answer(
            partitions={
                member: [(topic, number) for topic, number in tps]
                for member, tps in answer.get("partitions", {}).items()
            },
            error=answer.get("error", ""),
            swayed=answer["swayed"],
        )
        for name, answer in json.loads(line).items()
    }
