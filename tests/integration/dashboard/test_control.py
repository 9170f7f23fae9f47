"""Pause, resume and set by clicking, on the page of a running app."""

import platform

from playwright.sync_api import Page, expect

from dashboard_tab import Scene, ServedTest, Tab
from kafka_helpers import produce, wait_for
from penstock.kafka import Cluster
from penstock.ops.live_runs import runs_called
from penstock.ops.run_socket import ask_run


def test_an_app_is_paused_changed_and_resumed_by_clicking(scene: Scene, tab: Tab, dashboard: ServedTest) -> None:
    def state() -> dict[str, object]:
        (found,) = ask_run(runs_called(str(scene.pid))[0], {"call": "read"})["handlers"]
        return dict(found)

    page = tab.open("app", run=f"{platform.node()}:{scene.pid}")
    control = page.get_by_role("region", name="Control")
    control.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert state()["paused"] is False, "only previewed"
    _confirm(page, "Pause…", "Pause")
    expect(control).to_contain_text("paused")
    assert state()["paused"] is True
    end = Cluster(scene.brokers).end_offsets([(scene.topic, 0)])[scene.topic, 0]
    produce(scene.brokers, scene.topic, ['{"id": 1, "total": 1}'], partition=0)
    control.get_by_label("Concurrency").fill("3")
    control.get_by_label("Concurrency").press("Tab")
    control.get_by_label("Rate").fill("600/1m")
    control.get_by_label("Rate").press("Tab")
    _confirm(page, "Set…", "Set")
    wait_for(lambda: (state()["concurrency"], state()["rate"]) == (3, "600 per 1m"), "the changes")
    assert Cluster(scene.brokers).committed(scene.group, [(scene.topic, 0)])[scene.topic, 0] <= end
    _confirm(page, "Resume…", "Resume")
    wait_for(lambda: state()["paused"] is False, "the end of the pause")
    wait_for(
        lambda: Cluster(scene.brokers).committed(scene.group, [(scene.topic, 0)])[scene.topic, 0] == end + 1,
        "the record that waited",
    )
    said = [each for each in dashboard.notes if each.startswith("Carried out in the browser: penstock")]
    assert [each.split()[6] for each in said] == ["pause", "set", "resume"]
    # What is wrong is said on the page.
    control.get_by_label("Concurrency").fill("many")
    control.get_by_label("Concurrency").press("Tab")
    _confirm(page, "Set…", "Set")
    expect(page.get_by_role("alert")).to_contain_text("is not a count")
    assert ["400" in fault for fault in tab.faults] == [True], "the browser says so too, in its console"
    tab.faults.clear()


def _confirm(page: Page, button: str, go: str) -> None:
    page.get_by_role("region", name="Control").get_by_role("button", name=button).click()
    page.get_by_role("dialog").get_by_role("button", name=go, exact=True).click()
