"""Metrics, logs and traces of an app that runs on a real broker."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from cli_helpers import Penstock
from kafka_helpers import WAIT_SECONDS, MakeTopic, read_records, running, wait_for
from penstock import App
from penstock.ops.metrics import METRICS
from prometheus_text import problems_of, read_metrics
from spans import Spans, carried, ids

SHOP = """
import logging, pathlib
from penstock import App, Retry

app = App("{group}", settings={{"sasl.password": "never-to-be-seen"}})
failed = set()

@app.consume("{source}", to="{group}.out", dead_letter="{group}.dlq", commit_every="100ms",
             order="key", retry=Retry(attempts=2, first="10ms"))
def double(value: int) -> int:
    if value == 3 and value not in failed:
        failed.add(value)
        logging.getLogger("shop").warning("never-to-be-seen: %s", value)
        raise TimeoutError("busy")
    if value < 0:
        raise ValueError("negative")
    if value == 100:
        while not pathlib.Path("go").exists():
            import time; time.sleep(0.02)
    return value * 2
"""


def write_hour_old(brokers: str, topic: str, values: list[int]) -> None:
    producer = Producer({"bootstrap.servers": brokers})
    for value in values:
        producer.produce(topic, str(value), key=str(value), timestamp=round((time.time() - 3600) * 1000))
    assert producer.flush(WAIT_SECONDS) == 0


def test_metrics_of_a_running_app_are_valid_and_its_log_is_json(
    brokers: str, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source = make_topic(1)
    (tmp_path / "shop.py").write_text(SHOP.format(group=group, source=source))
    write_hour_old(brokers, source, [1, 2, 3, -1, 100, 5])
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "run", "shop:app", "--metrics", "0", "--log", "json"],
            cwd=tmp_path,
            env={**os.environ, "PENSTOCK_BROKERS": brokers, "PENSTOCK_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        lines = _Log(tmp_path / "log")
        said = wait_for(lambda: [line for line in lines() if "Prometheus" in line["message"]], "the port")
        port = re.findall(r"port (\d+)", said[0]["message"])[0]

        def scrape() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return str(answer.read().decode())

        def scrape_finished(count: int) -> str:
            text = scrape()
            line = f'penstock_finished_records_total{{group="{group}",handler="double"}} {count}.0'
            return text if line in text else ""

        text = wait_for(lambda: scrape_finished(5), "all but the record that waits")
        assert problems_of(text) == []
        # The app reads its lag when partitions are assigned, and then every ten seconds.
        text = wait_for(lambda: _with_lag(scrape()), "the lag")
        check_scraped(text, group, source)
        (tmp_path / "go").touch()
        wait_for(lambda: scrape_finished(6), "the last one")
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, out) == (0, b"")
    found = lines()
    assert all({"ts", "level", "event", "message"} <= line.keys() for line in found)
    assert {"started", "assigned", "retried", "dead_lettered", "log", "stopping", "stopped"} <= {
        line["event"] for line in found
    }
    (logged,) = [line for line in found if line["event"] == "log"]
    assert (logged["logger"], logged["level"], logged["message"]) == ("shop", "warning", "***: 3")
    assert "never-to-be-seen" not in (tmp_path / "log").read_text()


class _Log:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self) -> list[dict[str, Any]]:
        lines = self._path.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


def _with_lag(text: str) -> str:
    return text if read_metrics(text)["kafka_consumergroup_group_lag"].samples else ""


def check_scraped(text: str, group: str, source: str) -> None:
    assert problems_of(text) == []
    families = read_metrics(text)
    # The parser removes the suffix from the name of a counter.
    assert {name.removesuffix("_total") for name in METRICS} <= families.keys()

    def value(name: str, **labels: str) -> float:
        found = [
            sample.value
            for family in families.values()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert len(found) == 1, (name, found)
        return found[0]

    who = {"group": group, "handler": "double"}
    tp = {"group": group, "topic": source, "partition": "0"}
    assert value("penstock_outputs_total", **who) == 4
    assert value("penstock_dead_letters_total", **who) == 1
    assert value("penstock_retries_total", group=group, topic=source) == 2
    assert value("penstock_in_flight", **who) == 1
    assert value("penstock_lanes", **who) == 1
    # Records that share a bundle with the one that waits count when the bundle ends; the first bundle has one record.
    assert value("penstock_handler_seconds_count", **who) >= 1
    assert value("penstock_commit_seconds_count", **who) >= 1
    assert value("penstock_rebalance_seconds_count", **who) == 1
    assert value("penstock_owned_partitions", group=group, topic=source) == 1
    assert value("penstock_longest_record_seconds", **who) > 0
    assert value("kafka_partition_latest_offset", topic=source, partition="0") == 6
    assert value("kafka_consumergroup_group_lag", **tp) == value("kafka_consumergroup_group_sum_lag", group=group)
    assert value("kafka_consumergroup_group_lag_seconds", **tp) == pytest.approx(3600, abs=90)
    assert value("penstock_offset_map_bytes", **tp) > 0


def test_a_trace_goes_from_a_producer_through_handlers_to_their_outputs(
    brokers: str, group: str, make_topic: MakeTopic
) -> None:
    orders, bills = make_topic(1), make_topic(1)
    app, spans = App(group), Spans()

    @app.consume(orders, to=bills, dead_letter=f"{group}.dlq", tracing=True)
    def bill(value: int) -> int:
        return value * 2

    @app.consume(bills, group=f"{group}-mail", to=f"{group}.mails", tracing=True)
    async def mail(value: int) -> int:
        return value + 1

    producer = Producer({"bootstrap.servers": brokers})
    spans.produce(lambda carrier: producer.produce(orders, b"1", headers=dict(carrier)))
    assert producer.flush(WAIT_SECONDS) == 0
    with running(app, brokers):
        wait_for(lambda: spans.named(f"process {bills}"), "the last span")
    assert spans.tree() == {"send": None, f"process {orders}": "send", f"process {bills}": f"process {orders}"}
    (last,), (sent,) = spans.named(f"process {bills}"), read_records(brokers, f"{group}.mails")
    assert carried(sent) == [ids(last)]


def test_a_port_in_use_and_an_invalid_port_are_errors(
    penstock: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_with_a_port.py").write_text(SHOP.format(group="g", source="t"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    refused = penstock("run", "shop_with_a_port:app", "--metrics", "many", ok=False)
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: --metrics 'many' is not a port.")
