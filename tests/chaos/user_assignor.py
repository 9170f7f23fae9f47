"""An assignor as a user would write it, for members in a live group."""

from penstock.assign import Assignment, Group
from penstock.core.records.record import TopicPartition


class TakeTurns:
    """Subscribed members take partitions in turns."""

    name = "take-turns"

    def assign(self, group: Group) -> Assignment:
        shares: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
        for number, (topic, partition) in enumerate(group.topic_partitions()):
            readers = sorted(member.id for member in group.members if topic in member.topics)
            shares[readers[number % len(readers)]].append((topic, partition))
        return Assignment(shares)
