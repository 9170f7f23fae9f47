"""Divides a group's partitions evenly, starting from what each member owned before."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from penstock.assign.java_order import hash_order
from penstock.assign.model import Group, Member
from penstock.assign.partition_index import PartitionIndex
from penstock.assign.sticky.mixed_subscriptions import MixedShares, mixed_layout
from penstock.assign.sticky.previous_owners import PreviousOwnership, resolve_claims
from penstock.assign.sticky.racks import Racks
from penstock.assign.sticky.same_subscriptions import EqualShares
from penstock.core.records.java_hash import utf16
from penstock.core.records.record import TopicPartition


class Sharing(NamedTuple):
    """The partitions of every member.

    If all members subscribe to the same topics, ``moving`` says which partitions another member owned until now, and
    who gets them; otherwise it is None.
    """

    partitions: dict[str, list[TopicPartition]]
    moving: dict[TopicPartition, str] | None


def share_evenly(group: Group, previous: dict[str, PreviousOwnership]) -> Sharing:
    if not group.members:
        return Sharing({}, {})
    members = sorted(group.members, key=lambda member: utf16(member.id))
    leader_order = _leader_order(group.members, members)
    by_index = [previous[member.id] for member in members]
    sharing = None
    if _subscribe_alike(members[index] for index in leader_order):
        sharing = _share_equally(group, members, by_index, leader_order)
    if sharing is None or any(not member.topics and sharing.partitions[member.id] for member in members):
        sharing = _share_mixed(group, members, by_index, leader_order)
    return Sharing({member.id: sharing.partitions[member.id] for member in group.members}, sharing.moving)


def _leader_order(joined: Sequence[Member], members: Sequence[Member]) -> list[int]:
    """The indexes of the members in the order in which Kafka's Java leader visits them: that of its ``HashMap``."""
    index = {member.id: at for at, member in enumerate(members)}
    return [index[joined[at].id] for at in hash_order([member.id for member in joined])]


def _subscribe_alike(members: Iterable[Member]) -> bool:
    """Whether Kafka's Java client considers the subscriptions equal. It ignores leading members without topics.

    This decides between two algorithms, so it must be the same here (as long as members without topics get nothing).
    """
    common: tuple[str, ...] = ()
    for member in members:
        if not common:
            common = member.topics
        elif member.topics != common and set(member.topics) != set(common):
            return False
    return True


def _share_equally(
    group: Group, members: list[Member], previous: list[PreviousOwnership], leader_order: list[int]
) -> Sharing:
    layout = PartitionIndex(group)
    claims = resolve_claims(members, previous, leader_order, layout)
    equal = EqualShares(leader_order, layout, claims, Racks(group, members, layout))
    tps = layout.topic_partitions()
    partitions = {}
    for member, share in zip(members, equal.shares, strict=True):
        partitions[member.id] = _at(tps, share)
    return Sharing(partitions, {tps[number]: members[index].id for number, index in equal.moving.items()})


def _at(tps: list[TopicPartition], parts: list[Sequence[int]]) -> list[TopicPartition]:
    """The partitions with these numbers, in order."""
    slices = [tps[part.start : part.stop : part.step] for part in parts if isinstance(part, range)]
    if len(slices) < len(parts):
        return list(map(tps.__getitem__, sorted(chain.from_iterable(parts))))
    # The slices were given out one after the other, so they are already in order.
    return slices[0] if len(slices) == 1 else list(chain.from_iterable(slices))


def _share_mixed(
    group: Group, members: list[Member], previous: list[PreviousOwnership], leader_order: list[int]
) -> Sharing:
    layout = mixed_layout(group, members)
    claims = resolve_claims(members, previous, leader_order, layout)
    shares = MixedShares(members, layout, claims, Racks(group, members, layout)).shares()
    tps = layout.topic_partitions()
    partitions = {member.id: sorted(map(tps.__getitem__, share)) for member, share in zip(members, shares, strict=True)}
    return Sharing(partitions, None)
