"""One browser, one dashboard and one running app for all tests of this folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from playwright.sync_api import BrowserContext

from axe_core import axe_source
from chromium import Chromium, open_chromium
from dashboard_tab import Scene, ServedTest, Tab
from hostile_text import HOSTILE, HOSTILE_HTML
from kafka_helpers import WAIT_SECONDS, wait_for
from penstock.dashboard import DashboardOptions, serve_dashboard
from penstock.errors import ServerError
from penstock.kafka import Cluster
from penstock.ops.dead_letters import dead_letter_topics
from penstock.ops.runs import alive

_APP = """
from penstock import App

# After the tests, the group can be deleted when the broker has forgotten members that it knew before a restart.
app = App({group!r}, brokers={brokers!r}, settings={{"session.timeout.ms": 15_000}})

@app.consume({topic!r}, dead_letter={dlq!r}, order="key", concurrency=8)
def handle(value: dict) -> None:
    if value["total"] < 0:
        raise ValueError({reason!r})
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.together("dashboard"))


@pytest.fixture(scope="package")
def scene(brokers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder, topic = tmp_path_factory.mktemp("dashboard"), f"orders-{uuid4().hex[:8]}"
    group = f"{topic} {HOSTILE_HTML}"
    Cluster(brokers).create_topics([topic], partitions=3)
    Cluster(brokers).create_topics([f"{topic}.dlq"], partitions=1)
    text = _APP.format(group=group, brokers=brokers, topic=topic, dlq=f"{topic}.dlq", reason=HOSTILE_HTML + HOSTILE)
    (folder / "dashboard_app.py").write_text(text, "utf-8")
    producer = Producer({"bootstrap.servers": brokers})
    for number in range(60):
        value = {"id": number, "total": -1 if number < 3 else number, "note": HOSTILE_HTML + HOSTILE}
        headers: list[tuple[str, str | bytes | None]] = [(HOSTILE_HTML, HOSTILE_HTML.encode()), ("type", b"order")]
        producer.produce(
            topic, json.dumps(value).encode(), key=f"{number % 7} {HOSTILE_HTML}".encode(), headers=headers
        )
    assert producer.flush(WAIT_SECONDS) == 0
    command = [sys.executable, "-m", "penstock", "run", "dashboard_app:app", "--ui"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=os.environ, stdout=log, stderr=log)
    try:
        made = Scene(brokers, topic, group, process.pid, folder / "log")
        wait_for(lambda: _is_up(made, process, folder), "the app of the scene and its dead letters")
        yield made
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)
        # Other tests list all groups, and read the columns. After a restart of the broker it may know a former member.
        wait_for(lambda: _is_deleted(Cluster(brokers), group), "the end of the group")


def _is_up(scene: Scene, process: "subprocess.Popen[bytes]", folder: Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text(errors="replace")
    return any(run.pid == scene.pid for run in alive()) and dead_letter_topics(Cluster(scene.brokers))[scene.dlq] == 3


def _is_deleted(cluster: Cluster, group: str) -> bool:
    try:
        cluster.delete_group(group)
    except ServerError:
        return False
    return True


@pytest.fixture(scope="package")
def dashboard(brokers: str) -> Iterator[ServedTest]:
    """A dashboard that may write."""
    notes: list[str] = []
    options = DashboardOptions(allow_writes=True)
    with serve_dashboard(options, connect=partial(Cluster, brokers), note=notes.append) as served:
        yield ServedTest(served.url, f"http://{served.host}:{served.port}", notes, served.child)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    with open_chromium() as chromium:
        yield chromium


@pytest.fixture(scope="package")
def axe() -> str:
    return axe_source()


@pytest.fixture(scope="package")
def window(chromium: Chromium, dashboard: ServedTest) -> Iterator[BrowserContext]:
    """The signed-in browser."""
    with chromium.in_use() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        first = context.new_page()
        first.goto(dashboard.url)
        first.close()
    yield context
    with chromium.in_use():
        context.close()


@pytest.fixture
def tab(chromium: Chromium, window: BrowserContext, dashboard: ServedTest) -> Iterator[Tab]:
    """A fresh tab. After the test, no script may have run, nothing may have failed and nobody else been asked."""
    with chromium.in_use():
        page = window.new_page()
        tab = Tab(page, dashboard.origin)
        yield tab
        hacked = page.evaluate("() => typeof window.hacked")
        page.close()
    assert hacked == "undefined", "a script of foreign text has run"
    assert not tab.faults
