"""Lesson 8: exactly-once against a kill."""

from collections import Counter
from typing import Any

from penstock.app.options import Delivery
from penstock.learn.child_program import run_and_kill
from penstock.learn.killed_program import KilledTask, numbering_app
from penstock.learn.picture import FactTable, LessonStep
from penstock.learn.sandbox import Sandbox

_RECORDS = 12
_STOP_AT = 7


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic = sandbox.topic("orders")
    sandbox.produce(topic, [f"order {n}" for n in range(_RECORDS)])
    repeated = _killed(sandbox, topic, "at-least-once")
    sandbox.show(_step("at-least-once", repeated))
    once = _killed(sandbox, topic, "exactly-once")
    sandbox.show(_step("exactly-once", once))
    return {"records": _RECORDS, "at-least-once": repeated, "exactly-once": once}


def _killed(sandbox: Sandbox, topic: str, delivery: Delivery) -> dict[str, Any]:
    group = sandbox.group(delivery)
    output = sandbox.topic(f"invoices-{delivery}")
    task = KilledTask(
        brokers=sandbox.brokers,
        topic=topic,
        group=group,
        stop_at=_STOP_AT,
        to=output,
        delivery=delivery,
        commits="never",
    )
    run_and_kill(
        sandbox,
        task,
        handles=_STOP_AT,
        until=lambda: sandbox.end(output) >= _STOP_AT,
        what=f"{_STOP_AT} outputs are in the log",
    )
    at_kill = sandbox.committed(group, topic)
    rest = KilledTask(brokers=sandbox.brokers, topic=topic, group=group, to=output, delivery=delivery)
    sandbox.catch_up(numbering_app(rest, lambda _offset: None))
    return {
        "committed_at_the_kill": at_kill,
        "read_uncommitted": _summary(sandbox, output, "read_uncommitted"),
        "read_committed": _summary(sandbox, output, "read_committed"),
    }


def _summary(sandbox: Sandbox, topic: str, isolation: str) -> dict[str, int]:
    values = Counter(record.value for record in sandbox.read(topic, **{"isolation.level": isolation}))
    return {
        "outputs": values.total(),
        "different": len(values),
        "twice": sum(count > 1 for count in values.values()),
    }


def _step(delivery: str, facts: dict[str, Any]) -> LessonStep:
    rows = tuple(
        (level, *(str(facts[level][name]) for name in ("outputs", "different", "twice")))
        for level in ("read_uncommitted", "read_committed")
    )
    seen = facts["read_committed"]
    lessons = {
        "at-least-once": f"{seen['twice']} outputs are in the topic twice: they were written before the kill, and "
        "their records were not committed yet. None is missing.",
        "exactly-once": f"A consumer with read_committed sees {seen['outputs']} outputs, each once. The outputs "
        "before the kill are still in the log, in a transaction that was aborted: the offsets are committed in the "
        "same transaction as the outputs.",
    }
    return LessonStep(
        f'delivery="{delivery}" and a kill',
        f"An app writes an invoice for each of {_RECORDS} orders. It was killed after {_STOP_AT} invoices were in the "
        "log, and before its commit. Then it ran again to the end.",
        (
            FactTable(
                "the topic invoices, as a consumer reads it", ("isolation.level", "outputs", "different", "twice"), rows
            ),
        ),
        lessons[delivery],
    )
