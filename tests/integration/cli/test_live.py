"""``penstock pause``, ``resume`` and ``set`` for a run on a real broker, from other processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kafka_helpers import WAIT_SECONDS, MakeTopic, committed, lag, produce, wait_for
from penstock.kafka import Cluster

SHOP = """
from penstock import App

app = App("{group}")

@app.consume("{source}")
def ship(order: int) -> None: ...
"""


def test_a_run_is_paused_changed_and_resumed_from_other_processes(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source = make_topic(2)
    (tmp_path / "shop.py").write_text(SHOP.format(group=group, source=source))
    environment = {**os.environ, "PENSTOCK_BROKERS": brokers, "PENSTOCK_HOME": str(tmp_path / "home")}
    events = tmp_path / "events.jsonl"

    def penstock(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "penstock", *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def asked(*arguments: str) -> dict[str, Any]:
        out, err = penstock(*arguments, "--json").communicate(timeout=WAIT_SECONDS)
        assert out, err
        found: dict[str, Any] = json.loads(out)
        return found

    def seen(kind: str) -> list[dict[str, Any]]:
        lines = events.read_text().splitlines() if events.exists() else []
        return [each for each in map(json.loads, lines) if each["event"] == kind]

    run = penstock("run", "shop:app", "--events", str(events))
    try:
        produce(brokers, source, range(10))
        wait_for(lambda: len(seen("finished")) == 10, "the first records")
        (paused,) = asked("pause", group)["runs"]
        (state,) = paused["handlers"]
        assert (state["handler"], state["paused"], len(state["partitions"])) == ("ship", True, 2)
        produce(brokers, source, range(10, 20))
        (changed,) = asked("set", str(run.pid), "--handler", "ship", "concurrency=3")["runs"]
        assert changed["handlers"][0]["concurrency"] == 3
        wrong = asked("pause", group, "--partition", f"{source}:7")
        assert f"does not own {source}[7]" in wrong["error"]["problem"]
        wait_for(lambda: committed(cluster, group, source).get(0) == 10, "the commit of what was finished")
        assert len(seen("finished")) == 10
        (handler,) = asked("lag", group, "--recommend")["handlers"]
        assert (handler["source"], handler["concurrency"], handler["recommended"]) == ("apps", 3, 1)
        asked("resume", group)
        wait_for(lambda: lag(cluster, group, source) == 0, "the other records")
        told = [(each["action"], each["changes"], each["via"]) for each in seen("commanded")]
        assert told == [
            ("pause", {}, "penstock pause"),
            ("set", {"concurrency": 3}, "penstock set"),
            ("resume", {}, "penstock resume"),
        ]
    finally:
        run.terminate()
        assert run.wait(WAIT_SECONDS) == 0
        run.communicate()
