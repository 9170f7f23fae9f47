"""``rack-near``: members read from replicas in their own rack, as far as the balance allows, or at its expense."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from penstock.assign.model import Assignment, Group, Topic
from penstock.assign.partition_index import racks_of
from penstock.assign.rack_exchange import Exchange, is_near
from penstock.assign.sticky.previous_owners import PreviousOwnership
from penstock.assign.sticky.sticky_assignment import share_evenly
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError


@dataclass(frozen=True)
class RackNear:
    """``first="balance"``: as balanced as ``sticky``; then members exchange partitions so that more are near.

    ``first="near"``: a partition goes to a subscriber in one of its racks, if there is any, as balanced as that allows.
    In both cases members keep what they owned, if that is not worse. Members and partitions without a rack are near to
    all.
    """

    first: Literal["balance", "near"] = "balance"
    name: ClassVar[str] = "rack-near"

    def __post_init__(self) -> None:
        if self.first not in {"balance", "near"}:
            raise ConfigError(f"RackNear.first={self.first!r} is unknown.", hint='Use "balance" or "near".')

    def assign(self, group: Group) -> Assignment:
        return Assignment(_balance_first(group) if self.first == "balance" else _near_first(group))


def _share(group: Group) -> dict[str, list[TopicPartition]]:
    """As balanced as ``sticky``, without regard to racks."""
    members = tuple(replace(member, rack=None) for member in group.members)
    previous = {member.id: PreviousOwnership(member.owned, member.generation) for member in members}
    return share_evenly(Group(members, group.topics), previous)[0]


def _near_first(group: Group) -> dict[str, list[TopicPartition]]:
    """Divide the partitions with ``sticky``, as if the partitions of a topic with the same racks were a separate topic.

    Only members in these racks subscribe to it; if there is none, all subscribers of the topic do.
    """
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
