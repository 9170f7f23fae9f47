"""Sharing out a group's partitions evenly, with what each member had as the starting point."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from penstock.assign.java_order import hash_order
from penstock.assign.model import Group, Member
from penstock.assign.partition_index import Layout
from penstock.assign.sticky.mixed_subscriptions import MixedShares, mixed_layout
from penstock.assign.sticky.previous_owners import Memory, sort_out
from penstock.assign.sticky.racks import Racks
from penstock.assign.sticky.same_subscriptions import EqualShares
from penstock.core.records.java_hash import utf16
from penstock.core.records.record import TopicPartition


class Sharing(NamedTuple):
    """Every member's partitions; and, if all subscribe alike, what of it another has had until now, and who gets it."""

    partitions: dict[str, list[TopicPartition]]
    moving: dict[TopicPartition, str] | None


def share_out(group: Group, memories: dict[str, Memory]) -> Sharing:
    if not group.members:
        return Sharing({}, {})
    members = sorted(group.members, key=lambda member: utf16(member.id))
    heard = _heard(group.members, members)
    remembered = [memories[member.id] for member in members]
    sharing = None
    if _subscribe_alike(members[seat] for seat in heard):
        sharing = _share_equally(group, members, remembered, heard)
    if sharing is None or any(not member.topics and sharing.partitions[member.id] for member in members):
        sharing = _share_mixed(group, members, remembered, heard)
    return Sharing({member.id: sharing.partitions[member.id] for member in group.members}, sharing.moving)


def _heard(joined: Sequence[Member], members: Sequence[Member]) -> list[int]:
    """The order in which Kafka's leader goes through the members: that of its hash table."""
    seat = {member.id: at for at, member in enumerate(members)}
    return [seat[joined[at].id] for at in hash_order([member.id for member in joined])]


def _subscribe_alike(members: Iterable[Member]) -> bool:
    """Whether Kafka takes their subscriptions for equal, which overlooks members without any that come first.

    That decides between two ways of sharing, so it has to be the same here, as long as those get nothing.
    """
    common: tuple[str, ...] = ()
    for member in members:
        if not common:
            common = member.topics
        elif member.topics != common and set(member.topics) != set(common):
            return False
    return True


def _share_equally(group: Group, members: list[Member], remembered: list[Memory], heard: list[int]) -> Sharing:
    layout = Layout(group)
    claims = sort_out(members, remembered, heard, layout)
    equal = EqualShares(heard, layout, claims, Racks(group, members, layout))
    tps = layout.topic_partitions()
    partitions = {}
    for member, share in zip(members, equal.shares, strict=True):
        partitions[member.id] = _at(tps, share)
    return Sharing(partitions, {tps[number]: members[seat].id for number, seat in equal.moving.items()})


def _at(tps: list[TopicPartition], parts: list[Sequence[int]]) -> list[TopicPartition]:
    """The places with these numbers, in order."""
    slices = [tps[part.start : part.stop : part.step] for part in parts if isinstance(part, range)]
    if len(slices) < len(parts):
        return list(map(tps.__getitem__, sorted(chain.from_iterable(parts))))
    # Dealt out one after the other, so they are in order already.
    return slices[0] if len(slices) == 1 else list(chain.from_iterable(slices))


def _share_mixed(group: Group, members: list[Member], remembered: list[Memory], heard: list[int]) -> Sharing:
    layout = mixed_layout(group, members)
    claims = sort_out(members, remembered, heard, layout)
    shares = MixedShares(members, layout, claims, Racks(group, members, layout)).shares()
    tps = layout.topic_partitions()
    partitions = {member.id: sorted(map(tps.__getitem__, share)) for member, share in zip(members, shares, strict=True)}
    return Sharing(partitions, None)
