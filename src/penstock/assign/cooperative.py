"""The cooperative protocol for any assignor: a partition goes to its new owner after the old owner has revoked it."""

from collections.abc import Mapping, Sequence

from penstock.assign.model import Assignment, Assignor, Group
from penstock.core.records.record import TopicPartition


def cooperates(assignor: Assignor) -> bool:
    """Whether members keep their partitions while they rejoin. With Kafka's eager assignors they do not."""
    return bool(getattr(assignor, "cooperates", True))


def withhold(group: Group, assignment: Assignment) -> Assignment:
    """The same assignment, but partitions that another member still owns are pending."""
    pending = {**claimed_by_others(group, assignment.partitions), **assignment.pending}
    losing = set(pending.values())
    kept = {
        member: [tp for tp in tps if pending.get(tp) != member] if member in losing else tps
        for member, tps in assignment.partitions.items()
    }
    return Assignment(kept, pending)


def claimed_by_others(group: Group, partitions: Mapping[str, Sequence[TopicPartition]]) -> dict[TopicPartition, str]:
    """Partitions that are assigned to a new owner while another member still owns them, with the new owner."""
    given_up: set[TopicPartition] = set()
    new: dict[TopicPartition, str] = {}
    for member in group.members:
        had, gets = set(member.owned), set(partitions[member.id])
        given_up |= had - gets
        new.update(dict.fromkeys(gets - had, member.id))
    return {tp: member for tp, member in new.items() if tp in given_up}
