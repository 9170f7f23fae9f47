"""Kafka's ``sticky`` and ``cooperative-sticky``: balanced, with as few moves as possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.assign.cooperative import claimed_by_others
from penstock.assign.model import Assignment, Group, Member
from penstock.assign.sticky.previous_owners import PreviousOwnership
from penstock.assign.sticky.sticky_assignment import share_evenly
from penstock.assign.sticky.user_data import read_cooperative, read_sticky, write_cooperative, write_sticky
from penstock.core.records.record import TopicPartition


@dataclass(frozen=True)
class Sticky:
    """The eager assignor. Members revoke everything before they join; their user data says what they owned."""

    name: ClassVar[str] = "sticky"
    cooperates: ClassVar[bool] = False

    def assign(self, group: Group) -> Assignment:
        previous = {member.id: PreviousOwnership(*read_sticky(member.user_data)) for member in group.members}
        return Assignment(share_evenly(group, previous)[0])

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes:
        """The user data that a member of a live group sends when it joins."""
        return write_sticky(owned, generation)


@dataclass(frozen=True)
class CooperativeSticky:
    """A partition that moves stays ``pending`` until its old owner has revoked it; only then its new owner gets it."""

    name: ClassVar[str] = "cooperative-sticky"

    def assign(self, group: Group) -> Assignment:
        previous = {member.id: PreviousOwnership(member.owned, _generation(member)) for member in group.members}
        partitions, pending = share_evenly(group, previous)
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
    """Members with old clients send their generation only in their user data."""
    return read_cooperative(member.user_data) if member.generation is None else member.generation
