"""The handlers and pipelines that run on Spark: on this machine, and on others that report."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.lag_rows import rounded
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.ops.reported_runs import SeenRun
from penstock.ops.runs import RegisteredRun, recent
from penstock.ops.spark_activity_file import read_spark_activity

_RATE_SECONDS = 60.0


class SparkSource:
    """Rows: ``run HOST:PID BORN``, and ``work HOST:PID GROUP NAME`` for each handler or output of a pipeline."""

    every = 1.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are a few rows
        rows: Rows = {}
        now = time.time()
        for run in recent():
            if run.engine == "spark":
                said = read_spark_activity(run.pid, run.born)
                rows |= _rows_of(run, said, now, alive=run.ending is None and run.process is not None)
        for seen in self._context.runs():
            if seen.spark is not None:
                with suppress(KeyError, TypeError, ValueError, AttributeError):  # of another version of Penstock
                    rows |= _rows_of(seen.run, seen.spark, now, alive=True, far=seen)
        publish(rows)

    def close(self) -> None: ...


def _rows_of(
    run: RegisteredRun, found: Mapping[str, Any] | None, now: float, *, alive: bool, far: SeenRun | None = None
) -> Rows:
    """Return the rows of a run. ``far`` is the run if it is on another machine."""
    session = (found or {}).get("session") or {}
    name = f"{run.host}:{run.pid}"
    key = f"run {name} {run.born:.0f}"
    rows: Rows = {
        key: {
            "run": key,
            "app": run.app,
            "pid": run.pid,
            "host": None if far is None else run.host,
            "shortened": far is not None and far.shortened,
            "since": round(run.born),
            "alive": alive,
            "stopping": run.stopping,
            "ended": None if run.ending is None else round(run.ending.at),
            "problem": None if alive else _problem(run),
            "master": session.get("master"),
            "application": session.get("application"),
            "ui": session.get("ui") if alive else None,
            "is_known": found is not None,
        }
    }
    for work in (found or {}).get("works", ()):
        rows[f"work {name} {work['group']} {work['name']}"] = _work(work, key, alive=alive, now=now)
    return rows


def _problem(run: RegisteredRun) -> str | None:
    return "It was killed." if run.ending is None else run.ending.problem


def _work(work: Mapping[str, Any], key: str, *, alive: bool, now: float) -> Row:
    batches = work["batches"]
    return {
        **{name: value for name, value in work.items() if name not in {"counts", "partitions"}},
        **work["counts"],
        "run": key,
        "state": work["state"] if alive or work["state"] in {"stopped", "failed"} else "ended",
        "rate": rounded(_rate(batches, work["since"], now)) if alive else None,
        "batches": batches,
        "seconds": batches[-1]["seconds"] if batches else None,
        "last_at": batches[-1]["at"] if batches else None,
        "partitions": [[*_placed(name), position, lag] for name, (position, lag) in sorted(work["partitions"].items())],
    }


def _placed(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def _rate(batches: Sequence[Mapping[str, Any]], since: float, now: float) -> float:
    """Return the records per second of the last minute; of less, if only later batches are known."""
    known = batches[0]["at"] - batches[0]["seconds"] if batches else since
    start = max(since, known, now - _RATE_SECONDS)
    return float(sum(each["read"] for each in batches if each["at"] >= start)) / max(1.0, now - start)


def _spark(context: DashboardContext, _given: Mapping[str, str]) -> SparkSource:
    return SparkSource(context)


PAGE = DashboardPage("spark", "Spark", icon="spark", sources={"spark": _spark}, has_style=True)
