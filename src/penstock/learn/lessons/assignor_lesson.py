"""Lesson 3: range, round robin and sticky on the worked examples, by members of real groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.records.record import TopicPartition
from penstock.learn.picture import Grid, GridRow, LessonStep, Mark
from penstock.learn.plain_members import PlainMembers
from penstock.learn.sandbox import Sandbox

_STICKY = "cooperative-sticky"
_SAME = {"C0": ("t0", "t1"), "C1": ("t0", "t1")}
_DIFFERENT = {"C0": ("a",), "C1": ("a", "b"), "C2": ("a", "b", "c")}
_SIZES = {"t0": 3, "t1": 3, "a": 1, "b": 2, "c": 3}

Owned = Mapping[str, Sequence[str]]
"""The partitions of each member, by names such as t0p1."""


def run(sandbox: Sandbox) -> dict[str, Any]:
    for topic, size in _SIZES.items():
        sandbox.topic(topic, partitions=size)
    facts: dict[str, Owned] = {}
    for assignor in ("range", "roundrobin"):
        facts[assignor] = _assigned(sandbox, assignor, _SAME, named=assignor)
    sandbox.show(_same_step(facts["range"], facts["roundrobin"]))
    uneven = facts["roundrobin, different topics"] = _assigned(sandbox, "roundrobin", _DIFFERENT, named="uneven")
    with PlainMembers(sandbox, sandbox.group("sticky"), _STICKY) as members:
        even = facts["sticky, different topics"] = _join(sandbox, members, _DIFFERENT)
        sandbox.show(_different_step(uneven, even))
        members.leave("C0")
        left = facts["sticky, C0 left"] = _names(sandbox, members.settle())
        sandbox.show(_left_step(even, left))
    return {"owned": facts}


def _assigned(sandbox: Sandbox, assignor: str, topics: Mapping[str, Sequence[str]], *, named: str) -> Owned:
    with PlainMembers(sandbox, sandbox.group(named), assignor) as members:
        return _join(sandbox, members, topics)


def _join(sandbox: Sandbox, members: PlainMembers, topics: Mapping[str, Sequence[str]]) -> Owned:
    for name, subscribed in topics.items():
        members.join(name, [sandbox.name(topic) for topic in subscribed])
        # One after the other, so that a sticky assignor has the same history each time.
        owned = members.settle()
    return _names(sandbox, owned)


def _names(sandbox: Sandbox, owned: Mapping[str, Sequence[TopicPartition]]) -> Owned:
    return {name: [f"{sandbox.short(topic)}p{number}" for topic, number in tps] for name, tps in sorted(owned.items())}


def _grid(title: str, owned: Owned, *, before: Owned | None = None) -> Grid:
    columns = sorted({name for names in owned.values() for name in names})
    rows = []
    for member, names in owned.items():
        kept = names if before is None else before[member]
        marks = [Mark.NOTHING if name not in names else Mark.DONE if name in kept else Mark.AGAIN for name in columns]
        rows.append(GridRow(f"{member} ({len(names)})", tuple(marks)))
    legend = {Mark.DONE: "owns it"} if before is None else {Mark.DONE: "keeps it", Mark.AGAIN: "gets it now"}
    return Grid(title, tuple(columns), tuple(rows), legend)


def _same_step(ranged: Owned, dealt: Owned) -> LessonStep:
    return LessonStep(
        "range and roundrobin: two members, two topics of three partitions",
        "Members C0 and C1 subscribe to t0 and t1, first in a group with the assignor range, then in one with "
        "roundrobin. In brackets: how many partitions each has.",
        (_grid("range", ranged), _grid("roundrobin", dealt)),
        "range divides each topic on its own, and the first member gets the odd partition of every topic. roundrobin "
        "deals all partitions in turn, and goes on in t1 where t0 ended.",
    )


def _different_step(uneven: Owned, even: Owned) -> LessonStep:
    return LessonStep(
        "roundrobin and sticky: members with different topics",
        "Topics a, b and c have 1, 2 and 3 partitions. C0 subscribes to a, C1 to a and b, C2 to all three.",
        (_grid("roundrobin", uneven), _grid("sticky (cooperative-sticky)", even)),
        "roundrobin deals bp1 to C2, which gets all of c too. sticky looks at the balance of the whole group: C1 has "
        "both partitions of b.",
    )


def _left_step(before: Owned, left: Owned) -> LessonStep:
    return LessonStep(
        "sticky: a member leaves",
        "C0 has left the group. What has moved?",
        (_grid("sticky, after C0 has left", left, before=before),),
        "Only the partition of C0 has a new owner. C1 and C2 keep all that they had, so they keep what they know about "
        "those partitions, and nothing is fetched again.",
    )
