"""Apps on other machines, by what they report to Kafka; and the dashboard that an app serves beside itself."""

import http.client
import json
import re
import time
from contextlib import ExitStack

import pytest

from dashboard_tab import Scene
from kafka_helpers import wait_for
from penstock import App
from penstock.cli.runtime.seen_by_dashboards import SeenBy
from penstock.core.reports.events import Started
from penstock.engine import HealthBoard
from penstock.kafka import Cluster
from penstock.ops.reported_runs import RunReports
from penstock.ops.runs import registered


def test_a_run_with_report_is_seen_elsewhere_with_its_handlers_until_it_ends(brokers: str) -> None:
    cluster, reports, app = Cluster(brokers), RunReports(), App("far-away")
    started = Started(
        engine="local", group="far", handler="ship", topics=("orders",), lag=0, order="key", concurrency=8
    )

    def seen(*, later: float = 0.0) -> list[list[str]]:
        reports.read(cluster)
        its = [each.picture for each in reports.seen(now=time.time() + later) if each.run.app == "far-away"]
        return [[handler["name"] for handler in picture["handlers"]] for picture in its if picture]

    with registered("far-away", engine="local", groups=["far"], warn=pytest.fail):
        with ExitStack() as stack:
            seen_by = SeenBy("far:app", app, brokers, ui=False, report=True)
            (hear,) = seen_by.enter(stack, HealthBoard(), pytest.fail, pytest.fail)
            hear(started)
            wait_for(lambda: seen() == [["ship"]], "a report after the start")
            assert seen(later=60) == [], "it has not reported for long"
        wait_for(lambda: seen() == [], "the last report")


def test_run_ui_serves_a_read_only_dashboard_beside_the_app(scene: Scene) -> None:
    found = re.search(r"Dashboard: (http://127\.0\.0\.1:\d+)(/sign-in\?token=\S+)", scene.log.read_text())
    assert found is not None
    connection = http.client.HTTPConnection(found[1].removeprefix("http://"), timeout=60)
    connection.request("GET", found[2])
    answer = connection.getresponse()
    answer.read()
    connection.request("GET", "/api/about", headers={"Cookie": answer.headers["Set-Cookie"].partition(";")[0]})
    about = json.loads(connection.getresponse().read())
    connection.close()
    assert not about["writes"]
