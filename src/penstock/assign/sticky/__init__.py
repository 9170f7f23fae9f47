"""Kafka's ``sticky`` and ``cooperative-sticky``: even, and with as few moves as that allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.assign.cooperative import claimed_by_others
from penstock.assign.model import Assignment, Group, Member
from penstock.assign.sticky.previous_owners import Memory
from penstock.assign.sticky.sticky_assignment import share_out
from penstock.assign.sticky.user_data import read_cooperative, read_sticky, write_cooperative, write_sticky
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class Sticky:
    """The eager one: what each member had is read from its user data, since it gave all up before it joined."""

    name: ClassVar[str] = "sticky"
    cooperates: ClassVar[bool] = False

    def assign(self, group: Group) -> Assignment:
        memories = {member.id: Memory(*read_sticky(member.user_data)) for member in group.members}
        return Assignment(share_out(group, memories)[0])

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes:
        """What a member of a live group writes when it joins."""
        return write_sticky(owned, generation)


@dataclass(frozen=True)
class CooperativeSticky:
    """What moves is withheld from its new owner (``pending``) until the old one has given it up."""

    name: ClassVar[str] = "cooperative-sticky"

    def assign(self, group: Group) -> Assignment:
        memories = {member.id: Memory(member.owned, _generation(member)) for member in group.members}
        partitions, pending = share_out(group, memories)
        if pending is None:
            pending = claimed_by_others(group, partitions)
        losing = set(pending.values())
        kept = {
            member: [tp for tp in tps if pending.get(tp) != member] if member in losing else tps
            for member, tps in partitions.items()
        }
        return Assignment(kept, pending)

    def user_data(self, _owned: Sequence[TopicPartition], generation: int) -> bytes:
        return write_cooperative(generation)


def _generation(member: Member) -> int | None:
    """Old members have it in their user data only."""
    return read_cooperative(member.user_data) if member.generation is None else member.generation
