"""What each member owned before, and who keeps a partition that several members claim."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.assign.model import Member
from penstock.assign.partition_index import PartitionIndex
from penstock.core.records.record import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class PreviousOwnership:
    """The partitions that a member says it owned, and in which generation (None if it does not say)."""

    owned: Sequence[TopicPartition]
    generation: int | None


@dataclass(frozen=True)
class Claims:
    """``kept`` are the partitions that each member may keep, by the member's index.

    ``disputed`` are partitions that two members of the same generation claim: neither keeps them. ``stale`` maps a
    partition to its owner in an older generation, by the newest claim that is older than the newest generation.
    """

    kept: list[list[int]]
    disputed: frozenset[int]
    stale: dict[int, int] = field(default_factory=dict)


def resolve_claims(
    members: Sequence[Member], previous: Sequence[PreviousOwnership], order: list[int], layout: PartitionIndex
) -> Claims:
    """Decide who keeps which partition. ``order`` are the members' indexes, in the order of the leader."""
    claimed = [layout.numbers(each.owned) for each in previous]
    if _are_apart(claimed, layout.total):
        kept, disputed = claimed, frozenset[int]()
    else:
        kept, disputed = _settle(members, previous, claimed, order)
    return Claims(kept, disputed, _stale(previous, claimed, order))


def _are_apart(claimed: list[list[int]], total: int) -> bool:
    marks = bytearray(total)
    for numbers in claimed:
        for number in numbers:
            marks[number] = 1
    return marks.count(1) == sum(map(len, claimed))


def _settle(
    members: Sequence[Member], previous: Sequence[PreviousOwnership], claimed: list[list[int]], order: list[int]
) -> tuple[list[list[int]], frozenset[int]]:
    """If several members claim a partition, the newest generation wins.

    For the member that comes first in ``order``, the generation is that of the protocol, not that of its user data.
    Kafka's Java client does the same; all leaders must compute the same assignment.
    """
    kept: list[dict[int, None]] = [{} for _ in members]
    holder: dict[int, int] = {}
    disputed: set[int] = set()
    for index in order:
        mine = _or_none(previous[index].generation)
        for number in claimed[index]:
            other = holder.get(number)
            if other is not None:
                theirs = _or_none(members[other].generation)
                if mine < theirs:
                    continue
                kept[other].pop(number, None)
                if mine == theirs:
                    disputed.add(number)
                    holder[number] = index
                    continue
            kept[index][number] = None
            holder[number] = index
    return [list(numbers) for numbers in kept], frozenset(disputed)


def _stale(previous: Sequence[PreviousOwnership], claimed: list[list[int]], order: list[int]) -> dict[int, int]:
    newest = max((_or_none(each.generation) for each in previous), default=NO_GENERATION)
    stale: dict[int, tuple[int, int]] = {}
    for index in order:
        generation = _or_none(previous[index].generation)
        if generation < newest:
            for number in claimed[index]:
                if number not in stale or generation > stale[number][0]:
                    stale[number] = (generation, index)
    return {number: index for number, (_, index) in stale.items()}


def _or_none(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
