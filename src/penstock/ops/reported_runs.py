"""Runs on all machines: those of this one, and those that report to a compacted topic (``penstock run --report``)."""

import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.core.records.record import Record
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.live_activity_file import look_at
from penstock.ops.report_topics import RUNS_TOPIC, ReportTopicReader
from penstock.ops.runs import RegisteredRun, alive

# A run that has not reported for this long has ended without saying so.
_SILENT_SECONDS = 20.0
_READ_BACK = 2_000
# What a run of each engine says: these must be lists.
_LISTS = {"picture": ("handlers", "members"), "spark": ("works",)}


@dataclass(frozen=True)
class SeenRun:
    """A run that the dashboard can see; ``picture`` is what it does now, None until it has said so.

    ``spark`` is what a run on Spark reports; those of this machine have a file instead. ``shortened`` means that its
    report left something out.
    """

    run: RegisteredRun
    is_here: bool
    picture: dict[str, Any] | None
    spark: dict[str, Any] | None = None
    shortened: bool = False

    @property
    def id(self) -> str:
        return f"{self.run.host}:{self.run.pid}"

    def looked_at(self) -> "SeenRun":
        """Return it with what it does now."""
        return replace(self, picture=look_at(self.run.pid, self.run.born)) if self.is_here else self


class RunReports:
    """The runs that report. Any thread may call it."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, SeenRun]] = {}
        self._topic = ReportTopicReader(RUNS_TOPIC, self._take, read_back=_READ_BACK)

    def read(self, cluster: Cluster) -> None:
        """Take the reports since the last call. A cluster that does not answer leaves what is known."""
        self._topic.read(cluster)
        now = time.time()
        with self._topic.lock:
            self._found = {key: each for key, each in self._found.items() if now - each[0] < _SILENT_SECONDS}

    def _take(self, record: Record) -> None:
        key = (record.key or b"").decode(errors="replace")
        if record.value is None:
            self._found.pop(key, None)
            return
        with suppress(msgspec.MsgspecError, ValueError, TypeError, KeyError):
            content = json.loads(record.value)
            run = msgspec.convert(content["run"], RegisteredRun)
            said = {name: _checked(content.get(name), lists) for name, lists in _LISTS.items()}
            if any(each is not None for each in said.values()):
                seen = SeenRun(run, is_here=False, **said, shortened=content.get("shortened") is True)
                self._found[key] = record.timestamp_ms / 1000, seen

    def seen(self, *, now: float) -> list[SeenRun]:
        with self._topic.lock:
            return [seen for at, seen in self._found.values() if now - at < _SILENT_SECONDS]


def _checked(said: Any, lists: tuple[str, ...]) -> dict[str, Any] | None:
    is_one = isinstance(said, dict) and all(isinstance(said.get(name), list) for name in lists)
    return said if is_one else None


def seen_runs(reports: RunReports, cluster: Cluster | None, *, only: str | None = None) -> list[SeenRun]:
    """Return all runs that can be seen, or one by its id. Only that one has what it does now, if it is here."""
    here = [SeenRun(run, is_here=True, picture=None) for run in alive()]
    found = next((each.run for each in here if each.id == only), None)
    if found is not None:  # commands must not wait for a broker that does not answer
        return [SeenRun(found, is_here=True, picture=None).looked_at()]
    if only is not None:
        here = []
    if cluster is not None:
        reports.read(cluster)
    known = {each.id for each in here}
    far = [each for each in reports.seen(now=time.time()) if each.id not in known and only in {None, each.id}]
    return here + sorted(far, key=lambda each: (each.run.app, each.id))
