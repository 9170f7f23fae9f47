"""Topics and records: what is in a topic, found by filter, offset and time, and as it comes."""

from uuid import uuid4

from confluent_kafka import Producer
from playwright.sync_api import expect

from dashboard_tab import Scene, Tab, row_at
from hostile_text import HOSTILE_HTML, SHOWN_IN_HTML
from kafka_helpers import WAIT_SECONDS, produce
from penstock.kafka import Cluster


def test_a_topic_leads_to_its_records(scene: Scene, tab: Tab) -> None:
    page = tab.open("topics", q=scene.topic)
    page.get_by_role("row").filter(has_text=scene.topic).filter(has_not_text=".dlq").click()
    keys = page.get_by_label("Hot keys")
    expect(keys).to_contain_text("with about 7 keys")
    expect(keys.get_by_role("row").filter(has_text=f"0 {HOSTILE_HTML[:8]}")).to_contain_text(SHOWN_IN_HTML)
    expect(page.get_by_role("group", name="Records by partition")).to_contain_text("0")
    page.get_by_role("link", name="Records", exact=True).click()

    records = page.get_by_role("table", name="Records").get_by_role("row")
    expect(records.nth(60)).to_be_visible()
    field = page.get_by_label("Filter: a Python expression")
    field.fill('value["id"] == 17')
    field.press("Enter")
    expect(records).to_have_count(2)
    records.nth(1).get_by_role("link").click()
    for part in ("Key", "Value"):
        expect(page.locator("pre").and_(page.get_by_label(part, exact=True))).to_contain_text(
            "<script>window.hacked=1</script><img src=x onerror"
        )
    expect(page.get_by_role("rowheader").filter(has_text=SHOWN_IN_HTML)).to_have_count(1)
    assert "\u202e" not in page.locator("body").inner_text()

    field.fill("__import__('os')")
    field.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="has no function '__import__'")).to_be_visible()
    tab.faults = [each for each in tab.faults if "400" not in each]


def test_records_are_found_by_offset_and_time_and_appear_when_they_are_written(scene: Scene, tab: Tab) -> None:
    page = tab.open("records", topic=scene.dlq, offset=2)
    records = page.get_by_role("table", name="Records").get_by_role("row")
    expect(row_at(page, records, "0:2")).to_have_count(1)
    expect(row_at(page, records, "0:1")).to_have_count(0)
    page.get_by_role("button", name="Time").click()
    page.get_by_label("From this time").fill("1d")
    page.get_by_label("From this time").press("Enter")
    expect(row_at(page, records, "0:0")).to_have_count(1)

    tab.open("records", topic=scene.topic, tail=1)
    expect(page.get_by_text("None yet.")).to_be_visible()
    produce(scene.brokers, scene.topic, [f'{{"total": 7, "note": "{HOSTILE_HTML[:24]}"}}'])
    new = page.get_by_role("table", name="New records").get_by_role("row")
    expect(new.filter(has_text="<script>window.hacked=1<")).to_have_count(1)


def test_newer_and_older_go_on_by_offset_whatever_the_times_of_records_are(scene: Scene, tab: Tab) -> None:
    topic = f"late-{uuid4().hex[:8]}"
    Cluster(scene.brokers).create_topics([topic], partitions=1)
    producer = Producer({"bootstrap.servers": scene.brokers})
    for offset in range(140):
        # The last records are the oldest ones, as after a replay.
        producer.produce(topic, b"x", partition=0, timestamp=1_700_000_000_000 + 1_000 * ((offset + 70) % 140))
    assert producer.flush(WAIT_SECONDS) == 0
    page = tab.open("records", topic=topic, partition=0, offset=0)
    expect(page.get_by_role("link", name="0:99", exact=True)).to_be_visible()
    page.get_by_role("link", name="Newer").click()
    expect(page.get_by_role("table", name="Records").get_by_role("row")).to_have_count(41)
    expect(page.get_by_role("link", name="0:139", exact=True)).to_be_visible()
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("table", name="Records").get_by_role("row")).to_have_count(101)
    expect(page.get_by_role("link", name="0:99", exact=True)).to_be_visible()
