"""What a page says when it cannot be shown, and that it continues by itself."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Route, expect

from dashboard_tab import Scene, Tab
from kafka_helpers import produce
from penstock.cli.console.connect import connect
from penstock.dashboard import DashboardOptions, serve_dashboard


@pytest.fixture
def refused(tab: Tab) -> Iterator[Tab]:
    """A tab in which requests may be refused: the browser's console says so."""
    yield tab
    tab.faults = [each for each in tab.faults if "Failed to load resource" not in each]


@pytest.mark.parametrize(
    ("place", "parameters", "problem"),
    [
        ("group", {}, "The group has no name."),
        ("group", {"name": "shop", "at": "orders"}, "'orders' is not a partition."),
        ("app", {}, "The request has no run."),
        ("topic", {"name": ""}, "The request has no name."),
    ],
)
def test_an_address_that_is_wrong_says_what_is_missing(
    refused: Tab, place: str, parameters: dict[str, object], problem: str
) -> None:
    page = refused.open(place, **parameters)
    expect(page.get_by_role("alert").filter(has_text=problem)).to_be_visible()
    page.get_by_role("link", name="Live apps").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Live apps")
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.fixture
def without_kafka(refused: Tab) -> Iterator[Tab]:
    no_broker = partial(connect, "127.0.0.1:1", None, None)
    with serve_dashboard(DashboardOptions(), connect=no_broker, note=print) as served:
        refused.origin = f"http://{served.host}:{served.port}"
        refused.page.goto(served.url)
        yield refused
        refused.page.goto("about:blank")


def test_without_kafka_pages_say_so_and_never_that_there_is_nothing(without_kafka: Tab) -> None:
    page = without_kafka.page
    for place in ("letters", "groups", "topics", "whatif"):
        without_kafka.open(place)
        expect(page.get_by_role("alert")).to_contain_text("127.0.0.1:1")
        expect(page.get_by_role("heading", name="No Kafka to look at, yet")).to_be_visible()
        expect(page.get_by_text("No dead letters")).to_have_count(0)
    without_kafka.open("apps")
    expect(page.get_by_role("heading", level=1)).to_have_text("Live apps")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_filter_of_new_records_that_is_wrong_says_so_and_can_be_corrected(scene: Scene, refused: Tab) -> None:
    page = refused.open("records", topic=scene.topic, tail=1, where="value[")
    expect(page.get_by_role("alert").filter(has_text="The filter is not an expression")).to_be_visible()
    field = page.get_by_label("Filter: a Python expression")
    field.fill('value["id"] == 4711')
    field.press("Enter")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="None yet")).to_be_visible()
    produce(scene.brokers, scene.topic, ['{"id": 4711, "total": 1}'])
    expect(page.get_by_role("table", name="New records")).to_contain_text("4711")


def test_a_page_whose_script_did_not_arrive_is_loaded_later_and_hides_no_other_page(refused: Tab) -> None:
    def lost(route: Route) -> None:
        route.abort()

    page = refused.open("apps")
    expect(page.get_by_role("heading", level=1)).to_have_text("Live apps")
    page.route("**/static/pages/spark.js*", lost)
    page.get_by_role("link", name="Spark").click()
    alert = page.get_by_role("alert").filter(has_text="The page spark cannot be loaded")
    expect(alert).to_be_visible()
    page.get_by_role("link", name="Live apps").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Live apps", timeout=5_000)
    page.unroute("**/static/pages/spark.js*", lost)
    page.get_by_role("link", name="Spark").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Spark", timeout=5_000)
