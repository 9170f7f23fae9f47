"""Racks for the sticky assignors: used only if partitions differ in their racks."""

from collections import Counter
from collections.abc import Sequence

from penstock.assign.model import Group, Member
from penstock.assign.partition_index import PartitionIndex


class Racks:
    """The rack of each member, by its index, and the racks of each partition, by its number in the layout."""

    def __init__(self, group: Group, members: Sequence[Member], layout: PartitionIndex) -> None:
        self.of_member = [member.rack or None for member in members]
        self.of_partition: list[frozenset[str]] = []
        self.in_use = False
        at_home = {rack for rack in self.of_member if rack}
        if at_home:
            for name in layout.topics:
                topic = group.topics[name]
                self.of_partition.extend(topic.racks or [frozenset()] * topic.partitions)
            everywhere = frozenset().union(*set(self.of_partition))
            self.in_use = not everywhere.isdisjoint(at_home) and set(self.of_partition) != {everywhere}

    def apart(self, index: int, number: int) -> bool:
        """Whether the member has a rack and none of the partition's replicas is in it."""
        rack = self.of_member[index]
        return self.in_use and rack is not None and rack not in self.of_partition[number]

    def rarest_first(self, numbers: Sequence[int]) -> Sequence[int]:
        """Partitions with few members in their racks come before those with many."""
        if not self.in_use:
            return numbers
        members = Counter(rack for rack in self.of_member if rack)
        near = {racks: sum(members[rack] for rack in racks) for racks in set(self.of_partition)}
        return sorted(numbers, key=lambda number: near[self.of_partition[number]])
