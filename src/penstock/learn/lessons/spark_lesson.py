"""Lesson 9: the same handler on Spark."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from penstock import engine as local
from penstock.app import App, Handler
from penstock.core.reports.events import BatchFinished, Event
from penstock.errors import SetupError
from penstock.learn import counting_app
from penstock.learn.picture import FactTable, LessonStep
from penstock.learn.sandbox import Sandbox

_PARTITIONS = 3
_RECORDS = 60


def require_spark(progress: Callable[..., None]) -> None:
    """Get what Spark needs, or raise an error that says what is missing."""
    try:
        from penstock import spark  # noqa: PLC0415 - takes long, and needs an extra

        spark.fetch_jars(None, progress=progress)
    except SetupError as error:
        hint = f"{error.hint} Lessons 1 to 8 need no Spark."
        raise SetupError(f"Lesson 9 runs on Spark. {error.problem}", hint=hint) from error


def run(sandbox: Sandbox) -> dict[str, Any]:
    topic = sandbox.topic("orders", partitions=_PARTITIONS)
    orders = [json.dumps({"id": number, "cents": 100 + number}) for number in range(_RECORDS)]
    sandbox.produce(topic, orders, keys=[f"c{number % 7}" for number in range(_RECORDS)])
    facts = {}
    for engine, start in (("local", _run_locally), ("spark", _run_on_spark)):
        app = _app(sandbox, topic, engine)
        slices = start(app, sandbox)
        invoices = [json.loads(record.value or b"") for record in sandbox.read(sandbox.name(f"invoices-{engine}"))]
        facts[engine] = _facts(sandbox, app.handlers[0], invoices, slices)
    same = facts["local"].pop("invoices") == facts["spark"].pop("invoices")
    sandbox.show(_where_step(facts))
    sandbox.show(_progress_step(facts, same=same))
    return {"records": _RECORDS, "same_invoices": same, **facts}


def _app(sandbox: Sandbox, topic: str, engine: str) -> App:
    group = sandbox.group(f"shop-{engine}")
    output = sandbox.topic(f"invoices-{engine}", partitions=_PARTITIONS)
    return counting_app.app.variant(group, lambda _handler: {"topics": (topic,), "group": group, "to": output})


def _run_locally(app: App, sandbox: Sandbox) -> int:
    local.run(app, brokers=sandbox.brokers, emit=lambda _: None, stop=threading.Event(), until_caught_up=True)
    return 0


def _run_on_spark(app: App, sandbox: Sandbox) -> int:
    from penstock import spark  # noqa: PLC0415 - takes long, and needs an extra

    events: list[Event] = []
    spark.run(app, brokers=sandbox.brokers, emit=events.append, stop=threading.Event(), until_caught_up=True)
    return sum(isinstance(event, BatchFinished) for event in events)


def _facts(sandbox: Sandbox, handler: Handler, invoices: Sequence[dict[str, Any]], slices: int) -> dict[str, Any]:
    tps = sandbox.cluster.topic_partitions(handler.topics)
    ends, committed = sandbox.cluster.end_offsets(tps), sandbox.cluster.committed(handler.group, tps)
    return {
        "processes": len({invoice["process"] for invoice in invoices}),
        "in_this_process": all(invoice["process"] == os.getpid() for invoice in invoices),
        "by_partition": dict(sorted(Counter(str(invoice["partition"]) for invoice in invoices).items())),
        "committed": {str(tp[1]): committed.get(tp) for tp in tps},
        "end": {str(tp[1]): ends[tp] for tp in tps},
        "lag": sum(ends[tp] - committed.get(tp, 0) for tp in tps),
        "batches": slices,
        "invoices": sorted((invoice["order"], invoice["cents"]) for invoice in invoices),
    }


def _where_step(facts: dict[str, Any]) -> LessonStep:
    rows = tuple(
        (
            engine,
            "this one" if facts[engine]["in_this_process"] else f"{facts[engine]['processes']} of Spark's workers",
            " ".join(f"p{number}:{count}" for number, count in facts[engine]["by_partition"].items()),
        )
        for engine in ("local", "spark")
    )
    return LessonStep(
        "One handler, two engines",
        f"The same function handled {_RECORDS} orders twice: on the local engine, and on Spark. It writes its process "
        "into each invoice, so Kafka knows where it ran:",
        (FactTable("who wrote the invoices", ("engine", "processes", "records by partition"), rows),),
        "On Spark, a task reads a slice of one partition straight from Kafka, and calls the handler in a worker "
        "process. Nothing in the code of the app says where it runs: `penstock run app:app --engine spark`.",
    )


def _progress_step(facts: dict[str, Any], *, same: bool) -> LessonStep:
    rows = tuple(
        (f"p{number}", str(end), str(facts["local"]["committed"][number]), str(facts["spark"]["committed"][number]))
        for number, end in facts["spark"]["end"].items()
    )
    verdict = "The invoices of both engines are the same." if same else "The invoices of the engines differ."
    return LessonStep(
        "The progress is in Kafka on both",
        "Each run has a group of its own. These are the committed offsets of both groups:",
        (FactTable("topic orders", ("partition", "end", "committed by local", "committed by spark"), rows),),
        f"{verdict} Both groups commit to Kafka, so `penstock lag` and every other tool sees an app on Spark as any "
        "other group, and you can change the engine of a group between two runs.",
    )
