"""Compares Penstock's assignment with Java's."""

from dataclasses import replace

from assignors.group_json import Answer
from penstock.assign import Assignment, Group, Member
from penstock.assign.sticky.user_data import read_sticky, write_sticky
from penstock.core.records.record import TopicPartition


def is_odd(group: Group) -> bool:
    """Whether the group has something for which Java's sticky assignors are known to give wrong answers.

    Members claim partitions that no longer exist, or topics to which they no longer subscribe; or a member subscribes
    to nothing.
    """
    return any(
        not member.topics
        or any(_is_invalid(group, member, tp) for tp in (*member.owned, *read_sticky(member.user_data)[0]))
        for member in group.members
    )


def without_invalid_claims(group: Group) -> Group:
    """The same group without the claims to partitions that the member cannot own.

    Java's assignor honours such claims while it balances, even if its answer is valid.
    """
    return Group(tuple(_without_invalid_claims(group, member) for member in group.members), group.topics)


def _without_invalid_claims(group: Group, member: Member) -> Member:
    owned = tuple(tp for tp in member.owned if not _is_invalid(group, member, tp))
    claimed, generation = read_sticky(member.user_data)
    valid = [tp for tp in claimed if not _is_invalid(group, member, tp)]
    if len(valid) == len(claimed) or generation is None:
        return replace(member, owned=owned)
    return replace(member, owned=owned, user_data=write_sticky(valid, generation))


def _is_invalid(group: Group, member: Member, tp: TopicPartition) -> bool:
    topic, number = tp
    return topic not in member.topics or topic not in group.topics or number >= group.topics[topic].partitions


def is_sound(group: Group, answer: Answer, penstocks: Assignment) -> bool:
    """Whether Java's answer is a valid assignment.

    If a member has no topics, Java may withhold partitions without saying so. A partition may be missing only if
    Penstock withholds it too.
    """
    if answer.error:
        return False
    topics = {member.id: set(member.topics) for member in group.members}
    given = [tp for tps in answer.partitions.values() for tp in tps]
    wanted = set(group.topic_partitions())
    return (
        len(set(given)) == len(given)
        and set(given) <= wanted
        and all(tp[0] in topics[member] for member, tps in answer.partitions.items() for tp in tps)
        and (all(topics.values()) or wanted - set(given) <= set(penstocks.pending))
    )


def same(assignment: Assignment, answer: Answer) -> bool:
    penstocks = {member: set(tps) for member, tps in assignment.partitions.items()}
    return penstocks == {member: set(tps) for member, tps in answer.partitions.items()}
