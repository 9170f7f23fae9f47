"""Our answer against Java's."""

from assignors.wire import Answer
from penstock.assign import Assignment, Group
from penstock.assign.sticky.user_data import read_sticky


def is_odd(group: Group) -> bool:
    """Whether the group has what Java's sticky assignors are known to err on.

    Claims to partitions that no longer exist, and to topics that the member no longer subscribes to; and members that
    subscribe to nothing.
    """
    return any(
        not member.topics
        or any(
            topic not in member.topics or topic not in group.topics or number >= group.topics[topic].partitions
            for topic, number in (*member.owned, *read_sticky(member.user_data)[0])
        )
        for member in group.members
    )


def is_sound(group: Group, answer: Answer, ours: Assignment) -> bool:
    """Whether Java's answer can be carried out.

    What it withholds for a member without topics does not show, but for being missing where we do not withhold it.
    """
    if answer.error:
        return False
    topics = {member.id: set(member.topics) for member in group.members}
    given = [place for places in answer.partitions.values() for place in places]
    wanted = set(group.places())
    return (
        len(set(given)) == len(given)
        and set(given) <= wanted
        and all(place[0] in topics[member] for member, places in answer.partitions.items() for place in places)
        and (all(topics.values()) or wanted - set(given) <= set(ours.pending))
    )


def same(assignment: Assignment, answer: Answer) -> bool:
    ours = {member: set(places) for member, places in assignment.partitions.items()}
    return ours == {member: set(places) for member, places in answer.partitions.items()}
