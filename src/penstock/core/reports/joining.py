"""What a member that does not have its partitions yet waits for, in words."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition

# The states of a classic group between two assignments.
_WAITS_FOR_MEMBERS = frozenset({"PreparingRebalance", "CompletingRebalance"})


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member of a group of the new protocol: what it has, and what the broker means it to have."""

    partitions: Collection[TopicPartition]
    target: Collection[TopicPartition]


def why_joining_takes(group: str, state: str, *, others: int, waited: float, session: float) -> str | None:
    """With the classic protocol; a sentence for people, or None where nobody else is waited for.

    ``others`` are the members that the broker counts besides ours. The session of one that was killed began before we
    joined, so it ends at the latest when we have waited for a whole one.
    """
    if others < 1 or state not in _WAITS_FOR_MEMBERS:
        return None
    waits = f"Joining group {group!r}: the broker counts {_other_members(others)}"
    if waited >= session:
        return (
            f"{waits} and has waited {waited:.0f} s, longer than the session timeout ({session:g} s). A living member "
            f"finishes what it has in progress first: see `penstock groups describe {group}`."
        )
    return f"{waits}. {_who_gives_back('session.timeout.ms', waited=waited, session=session)}"


def why_partitions_are_missing(
    group: str, members: Mapping[str, MemberAssignment], *, own: Collection[str], waited: float, session: float | None
) -> str | None:
    """With the new protocol; a sentence for people, or None where no other member holds what our members are to have.

    There a member joins at once, but gets a partition only when the member that had it has given it back. ``own`` are
    the ids of our members. ``session`` is None where the broker does not tell it.
    """
    wanted = {place for id_, member in members.items() if id_ in own for place in member.target}
    held = {id_: wanted.intersection(member.partitions) for id_, member in members.items() if id_ not in own}
    count, holders = sum(map(len, held.values())), sum(map(bool, held.values()))
    if not count:
        return None
    noun, verb = ("partition", "is") if count == 1 else ("partitions", "are")
    waits = (
        f"Joining group {group!r}: {count} {noun} that the broker assigned to this member {verb} still held by "
        f"{_other_members(holders)}"
    )
    if session is not None and waited >= session:
        return (
            f"{waits} after {waited:.0f} s, longer than the session timeout ({session:g} s). A living member "
            f"finishes what it has in progress first: see `penstock groups describe {group}`."
        )
    return f"{waits}. {_who_gives_back('consumer.session.timeout.ms of the group', waited=waited, session=session)}"


def _other_members(count: int) -> str:
    return "1 other member" if count == 1 else f"{count} other members"


def _who_gives_back(setting: str, *, waited: float, session: float | None) -> str:
    known = f"({setting})"
    if session is not None:
        known = f"({setting}, {session:g} s), at most {session - waited:.0f} s from now"
    return (
        f"One that was killed without leaving is dropped after its session timeout {known}; "
        "a living one first finishes what is in progress."
    )
