"""Runs that dashboards see: those of this machine even without a broker, and others while they report."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from penstock.core.records.record import Record
from penstock.core.reports.rebalance import JOINED
from penstock.kafka import Cluster
from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops import report_topics
from penstock.ops.rebalance_history import ReportedRebalance, rounds
from penstock.ops.report_topics import REBALANCES_TOPIC, RUNS_TOPIC
from penstock.ops.reported_rebalances import RebalanceReports, merged
from penstock.ops.reported_runs import RunReports, seen_runs
from penstock.ops.run_reporter import latest_that_fit
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


class Reporting:
    """A cluster with one topic of reports. A record gets the next offset."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.records: list[Record] = []

    def topics(self) -> dict[str, int]:
        return {self._topic: 1}

    def bounds(self, tps: Any) -> Any:
        return {tp: Bounds(0, len(self.records)) for tp in tps}

    def add(self, key: bytes, content: Any, *, at: float = 0.0) -> None:
        value = None if content is None else json.dumps(content).encode()
        self.records.append(Record(self._topic, 0, len(self.records), key, value, timestamp_ms=int(at * 1000)))

    def span(self, starts: Any, _ends: Any) -> list[Record]:
        return self.records[starts[self._topic, 0] :]


@pytest.fixture
def reporting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Reporting:
    made = Reporting(request.param)
    monkeypatch.setattr("penstock.kafka.admin.log_bounds.Logs.bounds", lambda _logs, tps: made.bounds(tps))
    monkeypatch.setattr("penstock.kafka.admin.log_bounds.Logs.__init__", lambda *_: None)
    monkeypatch.setattr(report_topics, "read_span", lambda _cluster, starts, ends: made.span(starts, ends))
    monkeypatch.setattr(report_topics, "_READ_SECONDS", 0.0)
    return made


@pytest.mark.parametrize("reporting", [RUNS_TOPIC], indirect=True)
def test_runs_that_ended_without_saying_so_are_forgotten(reporting: Reporting, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = RunReports()
    for number in range(100):
        run = asdict(RUN) | {"pid": number}
        content = {"run": run, "picture": {"handlers": [], "members": []}}
        reporting.add(f"far:{number}:1000".encode(), content, at=number * 10.0)
        monkeypatch.setattr("time.time", lambda now=number * 10.0: now)
        reports.read(cast(Cluster, reporting))
        assert [each.run.pid for each in reports.seen(now=number * 10.0)] == [*range(max(0, number - 1), number + 1)]
    assert len(reports._found) == 2, "each run that was killed would stay in memory, with its picture"


@pytest.mark.parametrize("reporting", [RUNS_TOPIC], indirect=True)
def test_a_run_on_spark_reports_its_works_and_what_is_no_report_is_ignored(reporting: Reporting) -> None:
    spark: dict[str, Any] = {"at": 1.0, "session": None, "works": []}
    reporting.add(b"far:7", {"run": asdict(RUN) | {"engine": "spark"}, "spark": spark}, at=9.0)
    for number, content in enumerate(({}, [], {"run": {}}, {"run": asdict(RUN), "spark": {"works": {}}}, "x")):
        reporting.add(f"odd:{number}".encode(), content, at=9.0)
    reports = RunReports()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: 10.0)
        reports.read(cast(Cluster, reporting))
    (seen,) = reports.seen(now=10.0)
    assert (seen.picture, seen.spark, seen.run.engine) == (None, spark, "spark")


def rebalance(member: str, began: float, generation: int = 1) -> dict[str, Any]:
    its = {"member_id": f"{member}-1", "membership": "self-managed", "generation": generation, "began": began}
    return {"group": "shop", "member": member, "rebalance": its | {"reason": JOINED, "seconds": 1.0, "phases": []}}


@pytest.mark.parametrize("reporting", [REBALANCES_TOPIC], indirect=True)
def test_rebalances_of_all_machines_are_put_together_once(reporting: Reporting) -> None:
    reports = RebalanceReports()
    reporting.add(b"far:7", {"run": asdict(RUN), "rebalances": [rebalance("a", 10.0)]})
    reports.read(cast(Cluster, reporting))
    assert reports.version == 1
    reports.read(cast(Cluster, reporting))
    assert reports.version == 1, "nothing was new"
    reporting.add(b"far:7", {"run": asdict(RUN), "rebalances": [rebalance("a", 10.0), rebalance("a", 20.0, 2)]})
    reporting.add(b"near:8", {"run": asdict(RUN), "rebalances": [rebalance("b", 20.5, 2)]})
    reporting.add(b"odd:9", {"rebalances": [{"group": 7}]})
    reports.read(cast(Cluster, reporting))
    here = [msgspec.convert(rebalance("b", 20.5, 2), ReportedRebalance)]
    found = merged(here, reports.all())
    assert [(each.member, each.rebalance.began) for each in found] == [("a", 10.0), ("a", 20.0), ("b", 20.5)]
    (first, both) = rounds(found)
    assert [each.member for each in both.reported] == ["a", "b"], "members on two machines, one rebalance"
    assert first.generations == (1,)


@pytest.mark.parametrize("reporting", [REBALANCES_TOPIC], indirect=True)
def test_the_rebalances_of_runs_that_restart_in_a_loop_are_bounded(
    reporting: Reporting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.ops.reported_rebalances._MOST_RUNS", 3)
    for number in range(9):
        reporting.add(f"far:{number}".encode(), {"rebalances": [rebalance("a", float(number))]})
    reports = RebalanceReports()
    reports.read(cast(Cluster, reporting))
    assert [each.rebalance.began for each in reports.all()] == [6.0, 7.0, 8.0]


def test_the_latest_rebalances_that_fit_are_reported_and_none_in_part() -> None:
    small = [rebalance("a", float(number)) for number in range(5)]
    large = rebalance("a" * 5_000, 9.0)
    one = len(msgspec.json.encode(small[0]))
    assert latest_that_fit(small, 3 * one + 10) == small[2:]
    assert latest_that_fit([*small, large], 3 * one + 10) == small[2:]
    assert latest_that_fit([large], one) == []
