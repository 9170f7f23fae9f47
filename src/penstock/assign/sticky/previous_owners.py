"""Who had what: the members' claims, sorted out where several lay claim to one partition."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.assign.model import Member
from penstock.assign.partition_index import Layout
from penstock.core.records.record import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Memory:
    """What a member says it had, and since which generation, if it says one."""

    owned: Sequence[TopicPartition]
    generation: int | None


@dataclass(frozen=True)
class Claims:
    """By position of the members: the existing partitions that each rightly claims.

    ``disputed`` are those that two members of one generation claimed: neither keeps them. ``stale`` says whose a
    partition was by the newest claim that is older than the newest generation.
    """

    kept: list[list[int]]
    disputed: frozenset[int]
    stale: dict[int, int] = field(default_factory=dict)


def sort_out(members: Sequence[Member], memories: Sequence[Memory], order: list[int], layout: Layout) -> Claims:
    """``order`` is the one in which members are heard: their positions."""
    claimed = [layout.numbers(memory.owned) for memory in memories]
    if _are_apart(claimed, layout.total):
        kept, disputed = claimed, frozenset[int]()
    else:
        kept, disputed = _settle(members, memories, claimed, order)
    return Claims(kept, disputed, _stale(memories, claimed, order))


def _are_apart(claimed: list[list[int]], total: int) -> bool:
    marks = bytearray(total)
    for numbers in claimed:
        for number in numbers:
            marks[number] = 1
    return marks.count(1) == sum(map(len, claimed))


def _settle(
    members: Sequence[Member], memories: Sequence[Memory], claimed: list[list[int]], order: list[int]
) -> tuple[list[list[int]], frozenset[int]]:
    """The newer generation wins.

    The earlier claimant's generation is the one that the protocol carries and not the one of its user data: an oddity
    of Kafka's own, kept because all members have to come to one answer.
    """
    kept: list[dict[int, None]] = [{} for _ in members]
    holder: dict[int, int] = {}
    disputed: set[int] = set()
    for seat in order:
        mine = _or_none(memories[seat].generation)
        for number in claimed[seat]:
            other = holder.get(number)
            if other is not None:
                theirs = _or_none(members[other].generation)
                if mine < theirs:
                    continue
                kept[other].pop(number, None)
                if mine == theirs:
                    disputed.add(number)
                    holder[number] = seat
                    continue
            kept[seat][number] = None
            holder[number] = seat
    return [list(numbers) for numbers in kept], frozenset(disputed)


def _stale(memories: Sequence[Memory], claimed: list[list[int]], order: list[int]) -> dict[int, int]:
    newest = max((_or_none(memory.generation) for memory in memories), default=NO_GENERATION)
    stale: dict[int, tuple[int, int]] = {}
    for seat in order:
        generation = _or_none(memories[seat].generation)
        if generation < newest:
            for number in claimed[seat]:
                if number not in stale or generation > stale[number][0]:
                    stale[number] = (generation, seat)
    return {number: seat for number, (_, seat) in stale.items()}


def _or_none(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
