"""Explains why a member that has joined its group has not received its partitions yet."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition

# The states of a classic group during a rebalance, in which the coordinator waits for its members.
_REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member of a group of the new protocol: its current partitions and its target assignment."""

    partitions: Collection[TopicPartition]
    target: Collection[TopicPartition]


def why_joining_takes(group: str, state: str, *, others: int, waited: float, session: float) -> str | None:
    """For the classic protocol: a text for people, or None if the broker does not wait for other members.

    ``others`` is the number of members besides those of this process. The session of a member that was killed started
    before we joined, so it ends before we have waited for one whole session timeout.
    """
    if others < 1 or state not in _REBALANCING:
        return None
    waits = f"Joining group {group!r}: the broker counts {_other_members(others)}"
    if waited >= session:
        return (
            f"{waits} and has waited {waited:.0f} s, longer than the session timeout ({session:g} s). A member that is "
            f"alive finishes its records in progress first: see `penstock groups describe {group}`."
        )
    return f"{waits}. {_how_long('session.timeout.ms', waited=waited, session=session)}"


def why_partitions_are_missing(
    group: str, members: Mapping[str, MemberAssignment], *, own: Collection[str], waited: float, session: float | None
) -> str | None:
    """For the new protocol: a text for people, or None if no other member holds partitions that are assigned to us.

    In the new protocol a member joins at once, but receives a partition only after its previous owner has revoked it.
    ``own`` are the ids of the members of this process. ``session`` is None if the broker does not report it.
    """
    wanted = {tp for id_, member in members.items() if id_ in own for tp in member.target}
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
            f"{waits} after {waited:.0f} s, longer than the session timeout ({session:g} s). A member that is alive "
            f"finishes its records in progress first: see `penstock groups describe {group}`."
        )
    return f"{waits}. {_how_long('consumer.session.timeout.ms of the group', waited=waited, session=session)}"


def _other_members(count: int) -> str:
    return "1 other member" if count == 1 else f"{count} other members"


def _how_long(setting: str, *, waited: float, session: float | None) -> str:
    known = f"({setting})"
    if session is not None:
        known = f"({setting}, {session:g} s), at most {session - waited:.0f} s from now"
    return (
        f"If it was killed without leaving, the broker removes it after its session timeout {known}; "
        "if it is alive, it first finishes its records in progress."
    )
