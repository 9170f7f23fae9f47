"""One running app: what its handlers, workers and lanes do now."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.app_commands import COMMANDS, control_states
from penstock.dashboard.pages.given_parameters import needed_text
from penstock.dashboard.pages.lag_rows import rounded
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.errors import StateError
from penstock.ops.reported_runs import SeenRun

_RATE_SECONDS = 10.0
# Counts have not changed since the last point if it is older than this.
_IDLE_SECONDS = 2.0
# Quantiles of a latency histogram are taken from the runs of handlers in about this time.
_LATENCY_READS = 60


class LiveAppSource:
    """Rows: ``run``; ``handler GROUP NAME``, with the sums of its members."""

    every = 1.0

    def __init__(self, context: DashboardContext, run: str) -> None:
        self._context = context
        self._run = run
        self._latencies: dict[str, deque[list[int]]] = {}

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are a few rows
        found = self._context.runs(only=self._run)
        if not found:
            raise StateError(
                f"The run {self._run} has ended, or it runs on another machine that does not report.",
                hint="The page Live apps lists the runs that can be seen.",
            )
        publish(self._rows(found[0]))

    def close(self) -> None: ...

    def _rows(self, run: SeenRun) -> Rows:
        picture, controls = run.picture or {}, control_states(run)
        rows: Rows = {"run": {**run_row(run), "at": picture.get("at"), "is_known": run.picture is not None}}
        for handler in picture.get("handlers", ()):
            its = [
                each
                for each in picture.get("members", ())
                if (each["group"], each["handler"]) == (handler["group"], handler["name"])
            ]
            control = controls.get((handler["group"], handler["name"]))
            rows[f"handler {handler['group']} {handler['name']}"] = {
                **self._handler(handler, its, picture.get("at")),
                "control": control,
            }
        return rows

    def _handler(self, handler: Mapping[str, Any], members: Sequence[Mapping[str, Any]], at: float | None) -> Row:
        row: Row = {**handler, "rate": rounded(_rate(handler["points"], at)), "members": len(members)}
        row["rates"] = [
            [at, rounded((after - before) / max(0.001, at - since))]
            for (since, before, *_), (at, after, *_) in pairwise(handler["points"])
        ]
        if not members:
            return row
        for name in _SUMS:
            row[name] = sum(each[name] for each in members)
        for name in ("at_work", "longest_lanes", "retries", "partitions"):
            row[name] = [item for each in members for item in each[name]]
        row["at_work"].sort(key=lambda each: -each["seconds"])
        row["longest_lanes"].sort(key=lambda each: -each["waiting"])
        row["retries"].sort(key=lambda each: each["seconds"])
        row["partitions"].sort(key=lambda each: (each["topic"], each["partition"]))
        row["tenants"] = _added_up(members)
        oldest = [each["oldest_ms"] for each in members if each["oldest_ms"] is not None]
        row["oldest"] = min(oldest) / 1000 if oldest else None
        row["small_bytes"] = members[0]["small_bytes"]
        row["breaker"] = next((each["breaker"] for each in members if each["breaker"]), None)
        row["latency_bounds"] = members[0]["latency_bounds"]
        row["latency"] = self._lately(
            f"{handler['group']} {handler['name']}",
            [sum(counts) for counts in zip(*(each["latency"] for each in members), strict=True)],
        )
        return row

    def _lately(self, name: str, counts: list[int]) -> list[int]:
        """Return the part of these counts that is from the last minute, or since somebody looks."""
        kept = self._latencies.setdefault(name, deque(maxlen=_LATENCY_READS))
        kept.append(counts)
        if len(kept) == 1 or sum(kept[0]) == sum(counts):
            return counts
        return [max(0, now - then) for now, then in zip(counts, kept[0], strict=True)]


def _added_up(members: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return each tenant of ``fair_by=`` with the sums of all members, the busiest first."""
    found: dict[str, Row] = {}
    for each in (tenant for member in members for tenant in member.get("tenants", ())):
        known = found.setdefault(each["name"], {**each, "busy": 0, "waiting": 0})
        known["busy"] += each["busy"]
        known["waiting"] += each["waiting"]
    return sorted(found.values(), key=lambda each: (-each["busy"], -each["waiting"], each["name"]))


_SUMS = (
    "concurrency", "busy", "in_flight", "max_in_flight", "bytes", "max_bytes", "lanes", "waiting", "sending",
    "retrying",
)  # fmt: skip


def _rate(points: Sequence[Sequence[float]], at: float | None) -> float | None:
    """Return the records a second of the last seconds before ``at``. A run adds points only while its counts change."""
    if len(points) < 2:  # noqa: PLR2004 - a rate needs two points
        return None
    last = points[-1]
    end = last[0] if at is None or at - last[0] <= _IDLE_SECONDS else at
    start = end - _RATE_SECONDS
    first = next((each for each in reversed(points[:-1]) if each[0] <= start), points[0])
    return (last[1] - first[1]) / max(0.001, end - max(first[0], start)) if last[0] > start else 0.0


def run_row(run: SeenRun) -> Row:
    return {
        "id": run.id,
        "pid": run.run.pid,
        "host": run.run.host,
        "app": run.run.app,
        "engine": run.run.engine,
        "groups": list(run.run.groups),
        "since": round(run.run.born),
        "stopping": run.run.stopping,
        "here": run.is_here,
        "shortened": run.shortened,
    }


def _app(context: DashboardContext, given: Mapping[str, str]) -> LiveAppSource:
    return LiveAppSource(context, needed_text(given, "run"))


PAGE = DashboardPage("app", under="apps", sources={"app": _app}, endpoints=COMMANDS, has_style=True)
