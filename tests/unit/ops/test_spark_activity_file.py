"""What a run on Spark says about its handlers and pipelines, and the page that reads it."""

import os
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from penstock.core.reports import events
from penstock.core.reports.spark_activity import SparkActivity, SparkSessionFacts
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext, Rows
from penstock.dashboard.pages.spark_page import SparkSource
from penstock.errors import ServerError
from penstock.kafka import Cluster
from penstock.ops.reported_runs import SeenRun
from penstock.ops.runs import RegisteredRun, registered
from penstock.ops.spark_activity_file import SparkPicture, read_spark_activity, spark_activity_file

WHO: dict[str, Any] = {"group": "scoring", "handler": "score"}
COUNTS: dict[str, Any] = {"read": 10, "written": 8, "dead_lettered": 1, "skipped": 1}
STARTED = events.Started(engine="spark", **WHO, topics=("orders",), lag=40, order="key", concurrency=8)
BATCH = events.BatchFinished(**WHO, batch=1, **COUNTS, seconds=1.5, lag=30)


def noted(*heard: events.Event) -> dict[str, Any]:
    activity = SparkActivity()
    for at, event in enumerate(heard):
        activity.note(event, now=float(at))
    (work,) = activity.as_json()
    return work


def test_slices_restarts_and_partitions_are_kept() -> None:
    work = noted(
        STARTED,
        BATCH,
        events.Lagging(group="scoring", topic="orders", partition=3, offset=17, lag=5),
        events.Progressed(**WHO, **COUNTS),
        events.Restarting(**WHO, attempt=1, reason="the task died", seconds=1.0),
    )
    assert work["is_handler"]
    assert (work["lag"], work["counts"]) == (30, COUNTS)
    assert work["partitions"] == {"orders/3": (17, 5)}
    assert (work["state"], work["restarts"], work["problem"]) == ("restarting", 1, "the task died")
    assert [(each["at"], each["read"]) for each in work["batches"]] == [(1.0, 10)]


def test_the_state_follows_the_run_and_a_failure_stays() -> None:
    restarting = events.Restarting(**WHO, attempt=1, reason="x", seconds=0.1)
    assert noted(STARTED, restarting, BATCH)["state"] == "running"
    stopped = events.Stopped(**WHO, **COUNTS, seconds=3.0)
    assert noted(STARTED, events.Stopping(**WHO, reason="asked to"), stopped)["state"] == "stopped"
    error = events.Error(group="scoring", reason="no such topic", fatal=True)
    failed = noted(STARTED, error, stopped)
    assert (failed["state"], failed["problem"]) == ("failed", "no such topic")


@pytest.mark.parametrize("text", ["half \ud83d", "x" * 2_000_000])
def test_what_an_error_says_can_always_be_written(text: str) -> None:
    restarting = events.Restarting(**WHO, attempt=1, reason=text, seconds=0.1)
    for event in (restarting, events.Error(group="scoring", reason=text, fatal=True)):
        assert len(msgspec.json.encode(noted(STARTED, event))) < 100_000


def test_a_pipeline_is_told_from_a_handler_and_memory_is_bounded() -> None:
    pipeline = events.Started(engine="spark", **WHO, topics=("orders",), lag=0, expectations=("paid",))
    rows = events.ExpectationFailed(**WHO, expectation="paid", rows=2)
    work = noted(pipeline, *[BATCH] * 500, rows, rows)
    assert not work["is_handler"]
    assert len(work["batches"]) == 60
    assert work["failed_rows"] == {"paid": 4}


def test_events_of_others_change_nothing() -> None:
    activity = SparkActivity()
    assert not activity.note(BATCH, now=1.0)
    activity.note(STARTED, now=1.0)
    assert not activity.note(events.TopicCreated(topic="t", partitions=1), now=2.0)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))


def no_cluster() -> Cluster:
    raise ServerError("No Kafka.")


def page(*reported: SeenRun) -> Rows:
    published: list[Rows] = []
    context = DashboardContext(ClusterConnection(no_cluster), allow_writes=False, note=pytest.fail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DashboardContext, "runs", lambda *_: list(reported))
        SparkSource(context).read(published.append, frozenset())
    return published[-1]


def test_the_page_shows_the_run_its_session_and_its_work_also_after_its_end() -> None:
    facts = SparkSessionFacts("local[2]", "app-1", "http://127.0.0.1:4040")
    born = psutil.Process().create_time()
    with registered("sparky", engine="spark", groups=["scoring"], warn=pytest.fail):
        with spark_activity_file(SparkPicture(lambda: facts)) as hear:
            hear(STARTED)
            hear(BATCH)
        assert read_spark_activity(os.getpid(), born) is not None, "the last state is written at the end"
        run, work = page().values()
        assert (run["app"], run["ui"], run["master"], run["alive"]) == ("sparky", facts.ui, "local[2]", True)
        assert (work["name"], work["lag"], work["seconds"], work["run"]) == ("score", 30, 1.5, run["run"])
        assert work["rate"] > 0
    run, work = page().values()
    assert (run["alive"], run["ui"], work["state"], work["rate"]) == (False, None, "ended", None)


def test_runs_of_other_machines_are_on_the_page_as_they_report_and_odd_reports_hide_nothing() -> None:
    picture = SparkPicture(lambda: SparkSessionFacts("yarn", "app-7", None))
    picture.on_event(STARTED)
    picture.on_event(BATCH)
    run = RegisteredRun(7, 1_000.0, "far", "sparky", "spark", ("scoring",))
    odd = RegisteredRun(8, 1_000.0, "odd", "sparky", "spark", ("scoring",))
    rows = page(
        SeenRun(odd, is_here=False, picture=None, spark={"works": [{"group": "g"}]}),
        SeenRun(run, is_here=False, picture=None, spark=msgspec.json.decode(msgspec.json.encode(picture.as_json()))),
    )
    its = next(row for key, row in rows.items() if key == "run far:7 1000")
    work = rows["work far:7 scoring score"]
    assert (its["host"], its["alive"], its["master"]) == ("far", True, "yarn")
    assert (work["run"], work["lag"], work["state"]) == ("run far:7 1000", 30, "running")


def test_runs_of_the_local_engine_are_not_on_the_page() -> None:
    with registered("shop", engine="local", groups=["g"], warn=pytest.fail):
        assert page() == {}


def test_a_damaged_file_is_no_error() -> None:
    assert read_spark_activity(1, 2.0) is None
    with registered("sparky", engine="spark", groups=[], warn=pytest.fail):
        path = Path(os.environ["PENSTOCK_HOME"]) / "runs" / f"{os.getpid()}-{psutil.Process().create_time():.0f}.spark"
        path.write_bytes(b'{"works": [')
        (run,) = page().values()
        assert not run["is_known"]
