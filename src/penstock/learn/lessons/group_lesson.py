"""Lesson 1: groups and broadcast."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from penstock.app import App
from penstock.core.records.record import Record
from penstock.core.text.plurals import counted
from penstock.kafka.admin.consumer_groups import DescribedMember
from penstock.learn.picture import FactTable, Grid, LessonStep, Mark, ownership_rows
from penstock.learn.sandbox import QUICK_MEMBERS, Sandbox

_PARTITIONS = 2
_RECORDS = 12
_MEMBERS = {"billing": 3, "audit": 1}


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic = sandbox.topic("orders", partitions=_PARTITIONS)
    handled: dict[str, list[Record]] = {name: [] for name in _MEMBERS}
    owned: dict[str, dict[str, list[int]]] = {}
    groups = {name: sandbox.group(name) for name in _MEMBERS}
    for name, members in _MEMBERS.items():
        app = _app(groups[name], topic, members, handled[name])
        app.start(brokers=sandbox.brokers)
        sandbox.keep(app.stop)
    for name, members in _MEMBERS.items():
        owned[name] = _owned(sandbox.wait_for_members(groups[name], [topic], members=members))
    sandbox.show(_joined_step(owned))
    sandbox.produce(topic, [f"order {n}" for n in range(_RECORDS)], keys=[f"c{n}" for n in range(_RECORDS)])
    sandbox.wait_until(lambda: all(len(each) >= _RECORDS for each in handled.values()), "both groups have all records")
    counts = {
        name: {member: _count(handled[name], numbers) for member, numbers in members.items()}
        for name, members in owned.items()
    }
    sandbox.show(_handled_step(counts))
    return {
        "records": _RECORDS,
        "partitions": _PARTITIONS,
        "groups": {
            name: {
                "owned": owned[name],
                "handled": counts[name],
                "idle": sum(not numbers for numbers in owned[name].values()),
                "distinct": len({(each.partition, each.offset) for each in handled[name]}),
            }
            for name in _MEMBERS
        },
    }


def _app(group: str, topic: str, members: int, handled: list[Record]) -> App:
    app = App(group, settings=QUICK_MEMBERS)

    @app.consume(topic, members=members)
    def handle(record: Record) -> None:
        handled.append(record)

    return app


def _owned(members: Sequence[DescribedMember]) -> dict[str, list[int]]:
    """The partitions of each member, those with partitions first."""
    found = sorted((sorted(n for _, n in member.partitions) for member in members), key=lambda each: (not each, each))
    return {f"member {at}": numbers for at, numbers in enumerate(found, start=1)}


def _count(handled: Sequence[Record], partitions: Sequence[int]) -> int:
    by_partition = Counter(record.partition for record in handled)
    return sum(by_partition[number] for number in partitions)


def _joined_step(owned: dict[str, dict[str, list[int]]]) -> LessonStep:
    grids = tuple(
        Grid(
            f"group {name}",
            tuple(f"p{number}" for number in range(_PARTITIONS)),
            ownership_rows(members, _PARTITIONS),
            {Mark.DONE: "owns the partition"} if name == [*owned][-1] else {},
        )
        for name, members in owned.items()
    )
    return LessonStep(
        "Two groups consume one topic",
        f"The topic orders has {_PARTITIONS} partitions. Group billing has {_MEMBERS['billing']} members, group audit "
        f"has {_MEMBERS['audit']}. This is what the broker says about both groups:",
        grids,
        "In each group every partition has one owner. Billing has more members than the topic has partitions, so one "
        "of them is idle.",
    )


def _handled_step(counts: dict[str, dict[str, int]]) -> LessonStep:
    rows = tuple((name, member, str(count)) for name, members in counts.items() for member, count in members.items())
    return LessonStep(
        "Each group gets every record",
        f"{counted(_RECORDS, 'record')} with different keys are written to orders. Who handled them?",
        (FactTable("records handled", ("group", "member", "records"), rows),),
        f"Within a group, members share the records. Across groups, each gets all {_RECORDS}: to broadcast records, "
        "give each service a group of its own.",
    )
