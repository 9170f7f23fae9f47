"""Every page, on a real broker with a running app: it shows what is there, to everybody, and nothing else happens."""

import http.client
import os
import platform
import signal
from collections.abc import Callable
from functools import partial

import psutil
import pytest
from playwright.sync_api import Page, ViewportSize, expect

from axe_core import serious_violations
from chromium import Chromium
from dashboard_tab import Scene, ServedTest, Tab
from hostile_text import SHOWN_IN_HTML
from kafka_helpers import WAIT_SECONDS, produce, wait_for
from penstock.dashboard import DashboardOptions, serve_dashboard
from penstock.dashboard.pages import PAGES
from penstock.dashboard.server.web_guard import SECURITY_HEADERS
from penstock.devkit import Embedded
from penstock.kafka import Cluster, child_process
from servers import SharedServers

# A page that never fits should not hold up the other tests for long.
_LAYOUT_SECONDS = 60
_PHONE: ViewportSize = {"width": 390, "height": 780}

# Each page: its parameters, and a text that it shows when it has read from Kafka.
PLACES: dict[str, tuple[Callable[[Scene], dict[str, object]], Callable[[Scene], str]]] = {
    "groups": (lambda scene: {"q": scene.topic}, lambda scene: scene.topic),
    "group": (lambda scene: {"name": scene.group, "at": f"{scene.topic}/0"}, lambda _: "Finished above"),
    "apps": (lambda _: {}, lambda scene: str(scene.pid)),
    "app": (lambda scene: {"run": f"{platform.node()}:{scene.pid}"}, lambda _: "ValueError: <script>window.hacked=1"),
    "rebalances": (lambda scene: {"group": scene.group}, lambda _: "this member joined"),
    "whatif": (lambda scene: {"group": scene.group, "add": 2}, lambda _: "Other assignors"),
    "spark": (lambda _: {}, lambda _: "pipeline output"),  # failed apps of other tests may be there too
    "letters": (lambda scene: {"topic": scene.dlq, "at": "0:0"}, lambda _: "Traceback"),
    "topics": (lambda scene: {"q": scene.topic}, lambda scene: scene.topic),
    "topic": (lambda scene: {"name": scene.topic}, lambda _: "with about 7 keys"),
    "records": (lambda scene: {"topic": scene.dlq, "at": "0:0"}, lambda _: "penstock-dlq-traceback"),
}


@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_a_page_shows_the_running_app_in_both_themes_and_on_a_phone(
    scene: Scene, tab: Tab, axe: str, name: str
) -> None:
    assert name in PLACES, f"add the page {name} to PLACES, with a text that it shows"
    parameters, text = PLACES[name]
    page = tab.open(name, **parameters(scene))
    expect(page.locator("main")).to_contain_text(text(scene))
    assert not serious_violations(page, axe)
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert not serious_violations(page, axe, "color-contrast")
    page.set_viewport_size(_PHONE)
    expect(page.locator("main")).to_contain_text(text(scene))
    fits_the_width(page)
    page.keyboard.press("t")  # the browser remembers the theme


def fits_the_width(page: Page) -> None:
    """Nothing can be scrolled sideways, as soon as the page has followed the window."""
    page.wait_for_function(
        "() => ['html', 'body', 'main'].map((each) => document.querySelector(each))"
        ".every((each) => each.scrollWidth <= each.clientWidth)",
        timeout=_LAYOUT_SECONDS * 1000,
    )


def test_a_long_word_in_an_error_fits_a_phone(tab: Tab) -> None:
    page = tab.open("records", topic="x" * 200)
    expect(page.get_by_role("alert")).to_contain_text("xxx")
    page.set_viewport_size(_PHONE)
    fits_the_width(page)
    tab.faults = [each for each in tab.faults if "404" not in each]  # the browser says so too, in its console


def test_names_of_others_show_as_text(scene: Scene, tab: Tab) -> None:
    page = tab.open("groups", q=scene.topic)
    row = page.get_by_role("row").filter(has_text="<script>")
    expect(row).to_contain_text(f'<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"{SHOWN_IN_HTML}')
    row.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(SHOWN_IN_HTML)
    assert page.title().endswith(" · Penstock")


def test_a_plan_follows_the_controls_and_offers_its_command(scene: Scene, tab: Tab) -> None:
    page = tab.open("whatif", group=scene.group)
    command, moves = page.locator(".command code"), page.get_by_role("region", name="Moves")
    expect(moves).to_contain_text("Nothing would move")
    page.get_by_role("button", name="One member more").click()
    expect(command).to_contain_text("--members +1")
    expect(moves).to_contain_text("new-1")
    page.get_by_role("spinbutton").fill("6")
    page.get_by_role("spinbutton").press("Enter")
    expect(command).to_contain_text(f"--partitions {scene.topic}=6")
    page.get_by_role("link", name="range", exact=True).click()
    expect(command).to_contain_text("--assignor range")
    page.get_by_role("link", name="Start over").click()
    expect(moves).to_contain_text("Nothing would move")


def test_nobody_else_gets_in(dashboard: ServedTest) -> None:
    def status(method: str, path: str, **headers: str) -> int:
        connection = http.client.HTTPConnection(dashboard.origin.removeprefix("http://"), timeout=60)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        connection.close()
        return answer.status

    assert status("GET", "/") == status("GET", "/api/about") == status("GET", "/api/feed?topic=groups") == 401
    assert status("GET", "/", Host="evil.example") == status("GET", "/static/main.js", Host="evil.example:80") == 421
    assert status("POST", "/api/feed/look", Origin="http://evil.example") == 403
    assert status("POST", "/api/feed/look", Sec_Fetch_Site="cross-site") == 403
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


def test_a_page_survives_the_broker(scene: Scene, tab: Tab, kafka: Embedded, shared_servers: SharedServers) -> None:
    page = tab.open("groups", q=scene.topic)
    lag = page.get_by_role("row").filter(has_text="<script>")
    expect(lag).to_be_visible()
    page.evaluate("() => { window.sameDocument = true; }")
    pid = kafka.status().brokers[0].pid
    psutil.Process(pid).kill()
    expect(page.get_by_role("alert")).to_be_visible()
    wait_for(lambda: not psutil.pid_exists(pid or 0), "the end of the broker")
    expect(lag).to_be_visible()  # the last figures stay
    assert shared_servers.revive()
    expect(page.get_by_role("alert")).to_have_count(0)
    produce(scene.brokers, scene.topic, ['{"total": 1}'] * 5)
    expect(lag).to_be_visible()
    assert page.evaluate("() => window.sameDocument")


def test_a_page_survives_an_abort_of_the_process_that_reads(
    scene: Scene, tab: Tab, dashboard: ServedTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As librdkafka aborts it when a broker dies: docs/internals/membership-and-rebalances.md."""
    page = tab.open("groups", q=scene.topic)
    row = page.get_by_role("row").filter(has_text="<script>")
    expect(row).to_be_visible()
    page.evaluate("() => { window.sameDocument = true; }")
    first = dashboard.child.pid
    assert first is not None
    with monkeypatch.context() as patch:
        patch.setattr(child_process, "_CHILD", "import os; os.abort()")  # each one that starts dies too
        os.kill(first, signal.SIGABRT)
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The process that reads for this page has died (killed by SIGABRT).")
        expect(row).to_be_visible()  # the last figures stay
        fits_the_width(page)
    expect(alert).to_have_count(0)
    assert dashboard.child.pid not in {None, first}
    fresh = f"{scene.topic}-after-the-abort"
    Cluster(scene.brokers).commit(fresh, {(scene.topic, 0): 1})
    expect(page.get_by_role("row").filter(has_text=fresh)).to_be_visible()
    assert page.evaluate("() => window.sameDocument")
    Cluster(scene.brokers).delete_group(fresh)
    assert page.evaluate("async (name) => (await fetch('/api/topic/keys?name=' + name)).status", scene.topic) == 200


def test_a_page_survives_the_restart_of_the_dashboard(chromium: Chromium, scene: Scene) -> None:
    connect = partial(Cluster, scene.brokers)
    with chromium.in_use() as browser:
        window = browser.new_context()
        page = window.new_page()
        page.set_default_timeout(WAIT_SECONDS * 1000)
        with serve_dashboard(DashboardOptions(), connect=connect, note=print) as served:
            page.goto(f"{served.url}#/apps")
            expect(page.locator("main")).to_contain_text(str(scene.pid))
            page.evaluate("() => { window.sameDocument = true; }")
        expect(page.get_by_role("alert")).to_contain_text("does not answer")
        again = DashboardOptions(port=served.port)
        with serve_dashboard(again, connect=connect, note=print) as served:
            expect(page.get_by_role("alert")).to_contain_text("was started again")
            window.new_page().goto(served.url)  # the new link, in another tab
            expect(page.get_by_role("alert")).to_have_count(0)
            expect(page.locator("main")).to_contain_text(str(scene.pid))
            assert page.evaluate("() => window.sameDocument")
        window.close()
