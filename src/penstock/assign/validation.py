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
    given = Counter(place for places in settled.partitions.values() for place in places)
    found += [f"{place} is given {times} times" for place, times in given.items() if times > 1]
    wanted = set(group.places())
    found += [f"{place} does not exist or is not wanted" for place in given if place not in wanted]
    found += [f"{place} is given to nobody" for place in wanted if place not in given]
    found += [
        f"{member} gets {place} without a subscription"
        for member, places in settled.partitions.items()
        for place in places
        if place[0] not in topics.get(member, ())
    ]
    return found
