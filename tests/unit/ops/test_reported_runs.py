"""Runs that dashboards see: those of this machine even without a broker, and others while they report."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.core.records.record import Record
from penstock.kafka import Cluster
from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops import reported_runs
from penstock.ops.reported_runs import REPORT_TOPIC, RunReports, seen_runs
from penstock.ops.runs import RegisteredRun, registered

RUN = RegisteredRun(7, 1_000.0, "far", "shop", "local", ("shop",))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))


class Silent:
    """A cluster without brokers: each request would wait for them."""

    def topics(self) -> dict[str, int]:
        raise AssertionError("what is on this machine needs no broker")


def test_a_run_of_this_machine_is_found_without_a_broker() -> None:
    """The page of an app and its commands work while Kafka does not answer."""
    with registered("shop", engine="local", groups=["g"], warn=pytest.fail):
        name = f"{os.uname().nodename}:{os.getpid()}"
        (found,) = seen_runs(RunReports(), cast(Cluster, Silent()), only=name)
    assert found.is_here


def test_runs_that_ended_without_saying_so_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[Record] = []
    ends = {(REPORT_TOPIC, 0): 0}

    class Reporting:
        def topics(self) -> dict[str, int]:
            return {REPORT_TOPIC: 1}

    def bounds(_logs: Any, tps: Any) -> Any:
        return {tp: Bounds(0, ends[tp]) for tp in tps}

    monkeypatch.setattr("penstock.kafka.admin.log_bounds.Logs.bounds", bounds)
    monkeypatch.setattr("penstock.kafka.admin.log_bounds.Logs.__init__", lambda *_: None)
    monkeypatch.setattr(reported_runs, "read_span", lambda _cluster, starts, _ends: records[starts[REPORT_TOPIC, 0] :])
    monkeypatch.setattr(reported_runs, "_READ_SECONDS", 0.0)
    reports = RunReports()
    for number in range(100):
        run = asdict(RUN) | {"pid": number}
        value = json.dumps({"run": run, "picture": {"handlers": [], "members": []}}).encode()
        key = f"far:{number}:1000".encode()
        records.append(Record(REPORT_TOPIC, 0, number, key, value, timestamp_ms=number * 10_000))
        ends[REPORT_TOPIC, 0] = number + 1
        monkeypatch.setattr("time.time", lambda now=number * 10.0: now)
        reports.read(cast(Cluster, Reporting()))
        assert [each.run.pid for each in reports.seen(now=number * 10.0)] == [*range(max(0, number - 1), number + 1)]
    assert len(reports._found) == 2, "each run that was killed would stay in memory, with its picture"
