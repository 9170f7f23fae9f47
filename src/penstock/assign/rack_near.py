"""``rack-near``: members read from replicas in their own rack, as far as evenness allows, or before it."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from penstock.assign.model import Assignment, Group, Topic
from penstock.assign.partition_index import racks_of
from penstock.assign.rack_exchange import Exchange, is_near
from penstock.assign.sticky.previous_owners import Memory
from penstock.assign.sticky.sticky_assignment import share_out
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError


@dataclass(frozen=True)
class RackNear:
    """``first="balance"``: as even as ``sticky``, then near: no exchange of two partitions would bring one nearer.

    ``first="near"``: a partition goes to a subscriber in one of its racks, if there is any, as evenly as that allows.
    Either way members keep what they had where that is no worse. A member or a partition without racks is near to all.
    """

    first: Literal["balance", "near"] = "balance"
    name: ClassVar[str] = "rack-near"

    def __post_init__(self) -> None:
        if self.first not in {"balance", "near"}:
            raise ConfigError(f"RackNear.first={self.first!r} is unknown.", hint='Use "balance" or "near".')

    def assign(self, group: Group) -> Assignment:
        return Assignment(_balance_first(group) if self.first == "balance" else _near_first(group))


def _share(group: Group) -> dict[str, list[TopicPartition]]:
    """As evenly as ``sticky``, without regard to racks."""
    members = tuple(replace(member, rack=None) for member in group.members)
    memories = {member.id: Memory(member.owned, member.generation) for member in members}
    return share_out(Group(members, group.topics), memories)[0]


def _near_first(group: Group) -> dict[str, list[TopicPartition]]:
    """Share out partitions of the same topic and racks as topics of their own, to which only those near subscribe."""
    kinds: defaultdict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
    for topic, number in group.topic_partitions():
        kinds[topic, racks_of(group.topics[topic], number)].append(number)
    names = {f"{at:08}": kind for at, kind in enumerate(sorted(kinds, key=lambda kind: (kind[0], sorted(kind[1]))))}
    alias = {(kind[0], number): (name, at) for name, kind in names.items() for at, number in enumerate(kinds[kind])}
    wanted: dict[str, list[str]] = {member.id: [] for member in group.members}
    for name, (topic, racks) in names.items():
        readers = [member for member in group.members if topic in member.topics]
        for member in [member for member in readers if is_near(member, racks)] or readers:
            wanted[member.id].append(name)
    members = tuple(
        replace(
            member,
            topics=tuple(wanted[member.id]),
            owned=tuple(alias[tp] for tp in member.owned if tp in alias),
        )
        for member in group.members
    )
    shares = _share(Group(members, {name: Topic(len(kinds[kind])) for name, kind in names.items()}))
    return {
        member: sorted((names[name][0], kinds[names[name]][at]) for name, at in tps) for member, tps in shares.items()
    }


def _balance_first(group: Group) -> dict[str, list[TopicPartition]]:
    shares = Exchange(group, _share(group)).shares()
    return {member.id: shares[member.id] for member in group.members}
