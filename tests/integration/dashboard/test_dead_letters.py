"""The page of dead letters: what is there shows as text, and a replay is previewed, confirmed, done and logged."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chromium import Chromium
from dashboard_tab import Scene, ServedTest, Tab, row_at
from hostile_text import SHOWN_IN_HTML
from kafka_helpers import read_records
from penstock.core.failures.dead_letter_headers import replay_count
from penstock.dashboard import DashboardOptions, serve_dashboard
from penstock.kafka import Cluster
from penstock.paths import audit_file


def posted(page: Page, path: str, body: object) -> tuple[int, Any]:
    """What an endpoint answers to the page's own script."""
    script = """async ([path, body]) => {
      const answer = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
      return [answer.status, await answer.json()];
    }"""
    status, answer = page.evaluate(script, [path, body])
    return status, answer


def test_one_is_read_and_replayed_by_clicking(scene: Scene, tab: Tab, dashboard: ServedTest) -> None:
    page = tab.open("letters")
    page.get_by_role("link", name=scene.dlq).first.click()
    reasons = page.get_by_label("By reason").get_by_role("row")
    expect(reasons.filter(has_text="ValueError")).to_contain_text("3")

    letters = page.get_by_label("Dead letters", exact=True).get_by_role("row")
    row_at(page, letters, "0:1").get_by_role("link").click()
    one = page.get_by_label(f"{scene.dlq} 0:1")
    for part in ("Key", "Value", "Traceback"):
        expect(one.get_by_label(part, exact=True)).to_contain_text("<script>window.hacked=1</script><img src=x onerror")
        expect(one.get_by_label(part, exact=True)).to_contain_text("\\u202e")
    expect(one.get_by_role("rowheader").filter(has_text=SHOWN_IN_HTML)).to_have_count(1)
    assert "\u202e" not in page.locator("body").inner_text()

    page.get_by_label("Choose 0:1").check()
    page.get_by_role("button", name="Preview a replay of 1 chosen").click()
    replay = page.get_by_label("Replay", exact=True)
    expect(replay).to_contain_text("2 are not chosen")
    expect(replay.locator("code")).to_have_text(f"penstock dlq replay {scene.dlq} --at 0:1 --execute")
    replay.get_by_role("button", name="Replay 1 dead letter").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    assert [each.key for each in read_records(scene.brokers, scene.topic) if replay_count(each.headers)] == []
    replay.get_by_role("button", name="Replay 1 dead letter").click()
    dialog.get_by_role("button", name="Replay").click()

    expect(page.get_by_label("Replays", exact=True)).to_contain_text("done")
    # The handler refuses it again, so that it is back.
    expect(letters.filter(has_text="came back 1 time")).to_have_count(1)
    expect(row_at(page, letters, "0:1").get_by_text("replayed")).to_have_count(1)
    copies = [each for each in read_records(scene.brokers, scene.topic) if replay_count(each.headers)]
    assert [json.loads(each.value or b"")["total"] for each in copies] == [-1]
    assert any(scene.dlq in note and "started in the browser" in note for note in dashboard.notes)
    lines = audit_file(Cluster(scene.brokers).id()).read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines if scene.dlq in line] == ["sending", "sent"]
    page.get_by_role("link", name="Dead letters").first.click()
    expect(page.get_by_label("Replays so far").get_by_role("row").filter(has_text=scene.dlq)).to_have_count(1)


def test_a_preview_that_is_old_is_refused_and_so_is_one_that_was_never_made(scene: Scene, tab: Tab) -> None:
    page = tab.open("letters", topic=scene.dlq)
    expect(page.get_by_label("By reason")).to_contain_text("ValueError")
    wanted = {"topic": scene.dlq, "where": "offset == 0"}
    status, plan = posted(page, "/api/letters/plan", wanted)
    assert (status, plan["total"]) == (200, 1)
    for body in (wanted, {**wanted, "total": 2}):
        status, answer = posted(page, "/api/letters/replay", body)
        assert (status, answer["error"]["hint"]) == (409, "Preview it again.")
    tab.faults = [each for each in tab.faults if "409" not in each]


@pytest.fixture
def read_only(chromium: Chromium, tab: Tab, scene: Scene) -> Iterator[Page]:
    with serve_dashboard(DashboardOptions(), connect=partial(Cluster, scene.brokers), note=print) as served:
        tab.origin = f"http://{served.host}:{served.port}"
        tab.page.goto(served.url)
        yield tab.page
        tab.page.goto("about:blank")


def test_without_allow_writes_the_command_is_shown_instead(scene: Scene, read_only: Page, tab: Tab) -> None:
    page = tab.open("letters", topic=scene.dlq, where='reason == "ValueError" and offset == 2')
    expect(page.get_by_label("Dead letters", exact=True)).to_contain_text("1 record")
    page.get_by_role("button", name="Preview a replay of these").click()
    expect(page.get_by_role("button", name="Replay 1 dead letter")).to_be_disabled()
    expect(page.locator("code").filter(has_text="--where")).to_contain_text("penstock dlq replay")
    status, _ = posted(page, "/api/letters/replay", {"topic": scene.dlq, "total": 1})
    assert status == 403
    tab.faults = [each for each in tab.faults if "403" not in each]
