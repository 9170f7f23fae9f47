"""Lesson 4: a rebalance in slow motion, eager and cooperative."""

from collections.abc import Sequence
from typing import Any

from penstock.app import App
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event, Rebalanced
from penstock.core.reports.rebalance import without_owner
from penstock.learn.picture import Grid, GridRow, LessonStep
from penstock.learn.sandbox import QUICK_MEMBERS, Sandbox

_PARTITIONS = 4
_SLICES = 50
_ASSIGNORS = {"eager": "range", "cooperative": "cooperative-sticky"}

Move = tuple[float, str, str, TopicPartition]
"""When, "given up" or "taken", by whom, what."""


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic = sandbox.topic("orders", partitions=_PARTITIONS)
    facts = {}
    for kind, assignor in _ASSIGNORS.items():
        moves = _watch(sandbox, topic, sandbox.group(kind), assignor)
        facts[kind] = _facts(moves)
        sandbox.show(_step(kind, assignor, moves, facts[kind]))
    return facts


def _watch(sandbox: Sandbox, topic: str, group: str, assignor: str) -> list[Move]:
    """Let member A consume, then let B join; return what both report, in order."""
    moves: list[Move] = []
    with sandbox.running(_app("A", group, topic, assignor), on_event=_recorder("A", moves)):
        sandbox.wait_for_members(group, [topic], members=1)
        with sandbox.running(_app("B", group, topic, assignor), on_event=_recorder("B", moves)):
            sandbox.wait_for_members(group, [topic], members=2)
            sandbox.wait_until(lambda: is_complete(moves), "both members have reported the rebalance")
            return sorted(moves)


def _app(name: str, group: str, topic: str, assignor: str) -> App:
    app = App(name, settings=QUICK_MEMBERS)

    @app.consume(topic, group=group, assignor=assignor)
    def handle(value: bytes) -> None: ...

    return app


def _recorder(name: str, moves: list[Move]) -> Any:
    def record(event: Event) -> None:
        if isinstance(event, Rebalanced):
            seen = event.rebalance
            moves.extend((seen.given_up_at, "given up", name, tp) for tp in seen.given_up if seen.given_up_at)
            moves.extend((seen.taken_at, "taken", name, tp) for tp in seen.taken if seen.taken_at)

    return record


def _owners(moves: Sequence[Move], at: float) -> dict[int, str]:
    owners: dict[int, str] = {}
    for when, what, member, (_, partition) in moves:
        if when <= at:
            owners[partition] = member if what == "taken" else ""
    return owners


def is_complete(moves: Sequence[Move]) -> bool:
    """Whether each partition has an owner in the end, B is one of them, and A has reported what it gave up for B.

    A may report its side of a rebalance after B.
    """
    owners = _owners(sorted(moves), float("inf"))
    given_up = {tp[1] for _, what, member, tp in moves if (what, member) == ("given up", "A")}
    taken = {partition for partition, owner in owners.items() if owner == "B"}
    return len(owners) == _PARTITIONS and "" not in owners.values() and bool(taken) and taken <= given_up


def _facts(moves: Sequence[Move]) -> dict[str, Any]:
    handovers = [each for each in without_owner(moves) if each.seconds is not None]
    return {
        "moved": sorted(each.tp[1] for each in handovers if each.owner == "B"),
        "without_owner_ms": {str(each.tp[1]): round(each.seconds * 1000) for each in handovers if each.seconds},
        "revoked": sorted({tp[1] for _, what, _, tp in moves if what == "given up"}),
    }


def _step(kind: str, assignor: str, moves: Sequence[Move], facts: dict[str, Any]) -> LessonStep:
    began = min(when for when, what, _, _ in moves if what == "given up")
    ended = max(when for when, _, _, _ in moves)
    margin = max(0.004, (ended - began) * 0.15)
    slice_seconds = (ended - began + 2 * margin) / _SLICES
    times = [began - margin + slice_seconds * (number + 0.5) for number in range(_SLICES)]
    owners = [_owners(moves, at) for at in times]
    rows = tuple(
        GridRow(f"p{number}", tuple(each.get(number, "") or "·" for each in owners)) for number in range(_PARTITIONS)
    )
    moved, revoked = facts["moved"], facts["revoked"]
    longest = max(facts["without_owner_ms"].values(), default=0)
    lessons = {
        "eager": f"All {len(revoked)} partitions lose their owner for up to {longest} ms, though only {len(moved)} "
        "move. Nobody consumes until the slowest member has finished its records and joined again.",
        "cooperative": f"Only the {len(moved)} partitions that move lose their owner, for {longest} ms: their new "
        "owner gets them in a second rebalance. A never stops consuming the others.",
    }
    return LessonStep(
        f"B joins, {kind} ({assignor})",
        f"Member A owns all {_PARTITIONS} partitions, then member B joins. Time goes from left to right; one column "
        f"is {slice_seconds * 1000:.1f} ms. A dot means that nobody owns the partition.",
        (Grid(f"who owns each partition, {assignor}", ("",) * _SLICES, rows),),
        lessons[kind],
    )
