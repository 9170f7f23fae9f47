"""Checks that an assignment is valid."""

from collections import Counter

from penstock.assign.model import Assignment, Group


def faults(group: Group, assignment: Assignment) -> list[str]:
    """What is wrong with an assignment; empty if it is valid.

    Every partition must be assigned exactly once, to a subscriber, and nothing else may be assigned.
    """
    found = []
    if list(assignment.partitions) != [member.id for member in group.members]:
        found.append("its members are not those of the group, or not in the same order")
    topics = {member.id: set(member.topics) for member in group.members}
    settled = assignment.settled()
    given = Counter(tp for tps in settled.partitions.values() for tp in tps)
    found += [f"{tp} is assigned {times} times" for tp, times in given.items() if times > 1]
    wanted = set(group.topic_partitions())
    found += [f"{tp} does not exist or has no subscriber" for tp in given if tp not in wanted]
    found += [f"{tp} is assigned to nobody" for tp in wanted if tp not in given]
    found += [
        f"{member} gets {tp} but does not subscribe to its topic"
        for member, tps in settled.partitions.items()
        for tp in tps
        if tp[0] not in topics.get(member, ())
    ]
    return found
