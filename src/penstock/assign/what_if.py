"""Simulated changes of a group: more or fewer members, partitions or topics."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.assign.java_order import in_java_order
from penstock.assign.member_labels import labels
from penstock.assign.model import Group, Member, Topic
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError

__all__ = ["with_members", "with_partitions", "with_topics"]

_NEW_PARTITIONS = 1


def with_members(group: Group, change: str) -> Group:
    """``+2`` adds two members with the most common subscription, ``-NAME`` removes one, ``=8`` makes it 8 members."""
    if match := re.fullmatch(r"\+(\d+)", change):
        return _joined(group, int(match[1]))
    if match := re.fullmatch(r"=(\d+)", change):
        wanted = int(match[1])
        if wanted == 0:
            raise ConfigError("A group without members has no assignment.", hint="Use at least =1.")
        if wanted >= len(group.members):
            return _joined(group, wanted - len(group.members))
        stay = set(in_java_order(member.id for member in group.members)[:wanted])
        return replace(group, members=tuple(member for member in group.members if member.id in stay))
    if change.startswith("-"):
        return _left(group, change[1:])
    raise ConfigError(f"{change!r} is not a change of members.", hint="Use +2, -NAME or =8.")


def with_partitions(group: Group, counts: Mapping[str, int]) -> Group:
    """The group with these numbers of partitions. Lag, cost, rate and racks of added partitions are empty or 0."""
    topics = dict(group.topics)
    for name, count in counts.items():
        if name not in topics:
            raise ConfigError(
                f"The group does not read topic {name!r}.", hint=f"Use one of its topics: {', '.join(topics)}."
            )
        if count < topics[name].partitions:
            raise ConfigError(
                f"Topic {name!r} has {counted(topics[name].partitions, 'partition')}.",
                hint=f"Use at least {topics[name].partitions}: Kafka can add partitions, but not remove any.",
            )
        added = count - topics[name].partitions
        topics[name] = Topic(
            count,
            racks=(*topics[name].racks, *[frozenset[str]()] * added) if topics[name].racks else (),
            lag=(*topics[name].lag, *[0] * added) if topics[name].lag else (),
            cost=(*topics[name].cost, *[0.0] * added) if topics[name].cost else (),
            rate=(*topics[name].rate, *[0.0] * added) if topics[name].rate else (),
        )
    return replace(group, topics=topics)


def with_topics(group: Group, changes: Iterable[str]) -> Group:
    """``+NAME``: every member subscribes to the topic; ``-NAME``: no member does."""
    for change in changes:
        sign, name = change[:1], change[1:]
        if sign not in {"+", "-"} or not name:
            raise ConfigError(f"{change!r} is not a change of topics.", hint="Use +NAME or -NAME.")
        if sign == "+" and name not in group.topics:
            group = replace(group, topics={**group.topics, name: Topic(_NEW_PARTITIONS)})
        members = tuple(
            replace(member, topics=(*member.topics, name) if sign == "+" else _without(member.topics, name))
            for member in group.members
        )
        group = replace(group, members=members)
    return group


def _without(topics: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(topic for topic in topics if topic != name)


def _joined(group: Group, count: int) -> Group:
    if not group.members and not group.topics:
        raise ConfigError("The group has neither members nor topics.", hint="Name a topic with --topics +NAME.")
    alike = Counter(member.topics for member in group.members).most_common(1)
    usual = alike[0][0] if alike else tuple(group.topics)
    taken = {member.id for member in group.members}
    names = (name for number in range(1, len(taken) + count + 1) if (name := f"new-{number}") not in taken)
    newcomers = tuple(Member(id=next(names), topics=usual) for _ in range(count))
    return replace(group, members=(*group.members, *newcomers))


def _left(group: Group, name: str) -> Group:
    shown = labels(group)
    gone = [member for member in group.members if name in {member.id, member.static_id, shown[member.id]}]
    gone = gone or [member for member in group.members if name == member.client]
    if len(gone) != 1:
        problem = f"{len(gone)} members have the name {name!r}." if gone else f"There is no member {name!r}."
        raise ConfigError(problem, hint=f"The group has {', '.join(shown.values())}.")
    stay = tuple(member for member in group.members if member is not gone[0])
    if not stay:
        raise ConfigError("A group without members has no assignment.", hint="Keep at least one member.")
    return replace(group, members=stay)
