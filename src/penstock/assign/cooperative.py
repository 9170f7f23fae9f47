"""The cooperative protocol, for any assignor: what moves goes to its new owner when the old one has given it up."""

from collections.abc import Mapping, Sequence

from penstock.assign.model import Assignment, Assignor, Group
from penstock.core.records.record import TopicPartition


def cooperates(assignor: Assignor) -> bool:
    """Whether members may keep what they have while they join. Kafka's older assignors say that they may not."""
    return bool(getattr(assignor, "cooperates", True))


def withhold(group: Group, assignment: Assignment) -> Assignment:
    """The same, but what another member still has is pending."""
    pending = {**claimed_by_others(group, assignment.partitions), **assignment.pending}
    losing = set(pending.values())
    kept = {
        member: [tp for tp in tps if pending.get(tp) != member] if member in losing else tps
        for member, tps in assignment.partitions.items()
    }
    return Assignment(kept, pending)


def claimed_by_others(group: Group, partitions: Mapping[str, Sequence[TopicPartition]]) -> dict[TopicPartition, str]:
    """What is new to its member while another one still has it."""
    given_up: set[TopicPartition] = set()
    new: dict[TopicPartition, str] = {}
    for member in group.members:
        had, gets = set(member.owned), set(partitions[member.id])
        given_up |= had - gets
        new.update(dict.fromkeys(gets - had, member.id))
    return {tp: member for tp, member in new.items() if tp in given_up}
