"""Apps on other machines, by what they report to Kafka; and the dashboard that an app serves beside itself."""

import http.client
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect

from dashboard_tab import Scene, Tab
from hostile_text import HOSTILE_HTML, SHOWN_IN_HTML
from kafka_helpers import WAIT_SECONDS, wait_for
from penstock import App
from penstock.cli.runtime.seen_by_dashboards import SeenBy
from penstock.core.reports.events import Rebalanced, Started
from penstock.core.reports.rebalance import JOINED, Rebalance
from penstock.core.reports.run_activity import RunActivity
from penstock.core.reports.spark_activity import SparkSessionFacts
from penstock.engine import HealthBoard
from penstock.kafka import Cluster
from penstock.ops.report_topics import REBALANCES_TOPIC, RUNS_TOPIC, TOPIC_CONFIGS
from penstock.ops.reported_rebalances import RebalanceReports
from penstock.ops.reported_runs import RunReports
from penstock.ops.run_reporter import reporting
from penstock.ops.runs import RegisteredRun, registered
from penstock.ops.spark_activity_file import SparkPicture


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
            for hear in seen_by.enter(stack, HealthBoard(), pytest.fail, pytest.fail):
                hear(started)
            wait_for(lambda: seen() == [["ship"]], "a report after the start")
            assert seen(later=60) == [], "it has not reported for long"
        wait_for(lambda: seen() == [], "the last report")


def rebalanced(member: str, began: float, generation: int) -> Rebalanced:
    its = Rebalance(
        membership="self-managed",
        reason=JOINED,
        began=began,
        seconds=0.5,
        member_id=f"{member}-id",
        generation=generation,
        leader=f"{member}-id",
    )
    return Rebalanced(group=f"far {HOSTILE_HTML}", member=member, rebalance=its)


def test_the_rebalances_of_a_run_outlive_it_in_the_topic(brokers: str) -> None:
    cluster, reports = Cluster(brokers), RebalanceReports()
    began = time.time()

    def seen() -> list[tuple[str, float]]:
        reports.read(cluster)
        return [(each.member, each.rebalance.began) for each in reports.all() if each.rebalance.began >= began]

    picture = SparkPicture(lambda: None)
    with (
        registered("far-away", engine="spark", groups=["far"], warn=pytest.fail),
        reporting(picture, cluster, pytest.fail) as hear,
    ):
        assert hear is not None
        hear(rebalanced("one", began, 1))
        wait_for(lambda: seen() == [("one", began)], "the first rebalance")
        hear(rebalanced("one", began + 1, 2))
    wait_for(lambda: seen() == [("one", began), ("one", began + 1)], "the last one, which came before the end")


@pytest.fixture
def far_runs(brokers: str) -> Iterator[None]:
    """Reports of a machine that does not exist: an app, a run on Spark and a rebalance, with hostile names."""
    cluster = Cluster(brokers)
    for topic, config in TOPIC_CONFIGS.items():
        cluster.create_topics([topic], partitions=1, config=config)
    activity, spark = RunActivity(), SparkPicture(lambda: SparkSessionFacts("yarn", "app-7", "javascript:alert(1)"))
    who: dict[str, Any] = {"group": f"far {HOSTILE_HTML}", "handler": f"ship {HOSTILE_HTML}", "topics": ("orders",)}
    activity.note(Started(engine="local", lag=0, order="key", concurrency=8, **who), now=time.time())
    spark.on_event(Started(engine="spark", lag=70, order="key", concurrency=8, **who))
    local = {"at": time.time(), "handlers": activity.as_json(), "members": []}
    contents: dict[tuple[str, bytes], dict[str, Any]] = {
        (RUNS_TOPIC, b"far:7"): {"run": run_of("local", 7), "picture": local, "shortened": True},
        (RUNS_TOPIC, b"far:8"): {"run": run_of("spark", 8), "spark": spark.as_json()},
        (RUNS_TOPIC, b"far:9"): {"run": run_of("spark", 9), "spark": {"works": [{"odd": 1}]}},
        (REBALANCES_TOPIC, b"far:7"): {"rebalances": [asdict(rebalanced("box-7", time.time(), 4))]},
    }
    producer = Producer({"bootstrap.servers": brokers})
    for (topic, key), content in contents.items():
        # Their time is in the future: nothing reports again during the test.
        at = int(time.time() * 1000) + 600_000
        producer.produce(topic, json.dumps(content).encode(), key=key, timestamp=at)
    assert producer.flush(WAIT_SECONDS) == 0
    yield
    for topic, key in contents:
        producer.produce(topic, None, key=key)
    assert producer.flush(WAIT_SECONDS) == 0


def run_of(engine: str, pid: int) -> dict[str, Any]:
    run = RegisteredRun(pid, 1_000.0, f"far-box {HOSTILE_HTML}", f"shop {HOSTILE_HTML}", engine, ("far",))
    return asdict(run)


@pytest.mark.usefixtures("far_runs")
def test_one_dashboard_shows_apps_spark_and_rebalances_of_another_machine(tab: Tab) -> None:
    page = tab.open("apps")
    row = page.get_by_role("row").filter(has_text="far-box").filter(has_text="local")
    expect(row).to_contain_text(SHOWN_IN_HTML)
    row.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(SHOWN_IN_HTML)
    expect(page.locator("main")).to_contain_text("process 7 on far-box")
    expect(page.get_by_text("shortened", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Control")).to_have_count(0)

    page = tab.open("spark")
    run = page.locator(".spark-run").filter(has_text="process 8 on far-box")
    expect(run).to_contain_text("70")
    expect(run).to_contain_text("yarn")
    assert not page.locator("a[href^='javascript']").count()

    page = tab.open("rebalances", group=f"far {HOSTILE_HTML}")
    expect(page.locator("main")).to_contain_text("this member joined")
    expect(page.locator("main")).to_contain_text("generation 4")


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
