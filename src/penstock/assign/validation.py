"""What every answer of an assignor must be."""

from collections import Counter

from penstock.assign.model import Assignment, Group


def faults(group: Group, assignment: Assignment) -> list[str]:
    """What is wrong with the answer: it has to be complete, to subscribers only, with nothing twice or made up."""
    found = []
    if list(assignment.partitions) != [member.id for member in group.members]:
        found.append("the members are not those of the group")
    topics = {member.id: set(member.topics) for member in group.members}
    settled = assignment.settled()
    given = Counter(tp for tps in settled.partitions.values() for tp in tps)
    found += [f"{tp} is given {times} times" for tp, times in given.items() if times > 1]
    wanted = set(group.topic_partitions())
    found += [f"{tp} does not exist or is not wanted" for tp in given if tp not in wanted]
    found += [f"{tp} is given to nobody" for tp in wanted if tp not in given]
    found += [
        f"{member} gets {tp} without a subscription"
        for member, tps in settled.partitions.items()
        for tp in tps
        if tp[0] not in topics.get(member, ())
    ]
    return found
