"""Lesson 5: auto-commit loses and repeats records; Penstock commits what is finished."""

from typing import Any

from penstock.learn.child_program import run_and_kill
from penstock.learn.killed_program import KilledTask, numbering_app
from penstock.learn.picture import Grid, GridRow, LessonStep, Mark, offset_columns
from penstock.learn.sandbox import Sandbox

_RECORDS = 10
_STOP_AT = 4
_SOON_MS, _NEVER_MS = 100, 3_600_000
_LEGEND = {
    Mark.DONE: "handled before the kill",
    Mark.RUNNING: "handled after it",
    Mark.AGAIN: "handled twice",
    Mark.FAILED: "never handled",
}


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic = sandbox.topic("orders")
    sandbox.produce(topic, [f"order {n}" for n in range(_RECORDS)])
    facts: dict[str, Any] = {}
    facts["early"] = early = _with_auto_commit(sandbox, topic, "early", every_ms=_SOON_MS)
    sandbox.show(
        LessonStep(
            "Auto-commit: the client commits too early",
            f"A consumer with enable.auto.commit=true fetched {_RECORDS} records and was killed after "
            f"{_STOP_AT}. By then the client had committed offset {early['committed']}: what it had handed over, "
            "finished or not. The next consumer begins there.",
            (_grid(early),),
            f"{len(early['lost'])} records are lost: nobody handles them, and no error says so. The lag of the group "
            "is 0.",
        )
    )
    facts["late"] = late = _with_auto_commit(sandbox, topic, "late", every_ms=_NEVER_MS)
    sandbox.show(
        LessonStep(
            "Auto-commit: the client commits too late",
            "The same consumer with a longer auto.commit.interval.ms: it was killed before the first commit.",
            (_grid(late),),
            f"Nothing is lost, and {len(late['repeated'])} finished records are handled twice.",
        )
    )
    facts["penstock"] = ours = _with_penstock(sandbox, topic)
    sandbox.show(
        LessonStep(
            'Penstock: the commit follows the handler (commit="record")',
            f"A Penstock app was killed in its record {_STOP_AT}. It had committed offset {ours['committed']}, the "
            "first record that it had not finished.",
            (_grid(ours),),
            f"{len(ours['lost'])} records are lost, {len(ours['repeated'])} finished records are handled twice. "
            'Without commit="record" the app commits once a second, and after a kill it repeats at most what it '
            "finished since then. A clean stop repeats nothing.",
        )
    )
    return facts


def _with_auto_commit(sandbox: Sandbox, topic: str, name: str, *, every_ms: int) -> dict[str, Any]:
    group = sandbox.group(name)
    task = KilledTask(
        brokers=sandbox.brokers, topic=topic, group=group, stop_at=_STOP_AT, auto_commit_ms=every_ms, fetch=_RECORDS
    )
    expected = _RECORDS if every_ms == _SOON_MS else None
    return _killed(sandbox, task, committed=expected)


def _with_penstock(sandbox: Sandbox, topic: str) -> dict[str, Any]:
    group = sandbox.group("penstock")
    task = KilledTask(brokers=sandbox.brokers, topic=topic, group=group, stop_at=_STOP_AT, commits="each record")
    return _killed(sandbox, task, committed=_STOP_AT)


def _killed(sandbox: Sandbox, task: KilledTask, *, committed: int | None) -> dict[str, Any]:
    """Kill the program when this offset is committed; then let an app of the same group handle what is left."""
    before = run_and_kill(
        sandbox,
        task,
        handles=_STOP_AT,
        until=lambda: sandbox.committed(task.group, task.topic) == committed,
        what=f"offset {committed} is committed",
    )
    after: list[int] = []
    rest = KilledTask(brokers=task.brokers, topic=task.topic, group=task.group)
    sandbox.catch_up(numbering_app(rest, after.append))
    return {
        "committed": committed,
        "before": before,
        "after": after,
        "lost": sorted({*range(_RECORDS)} - {*before, *after}),
        "repeated": sorted({*before} & {*after}),
    }


def _grid(facts: dict[str, Any]) -> Grid:
    marks = {
        **dict.fromkeys(facts["lost"], Mark.FAILED),
        **dict.fromkeys(facts["after"], Mark.RUNNING),
        **dict.fromkeys(facts["before"], Mark.DONE),
        **dict.fromkeys(facts["repeated"], Mark.AGAIN),
    }
    row = GridRow("orders", tuple(marks[offset] for offset in range(_RECORDS)))
    return Grid("the records, by offset", offset_columns(_RECORDS), (row,), _LEGEND)
