"""Speculation on a real cluster: Spark starts a copy of a slow task, and takes the first result of the two."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_helpers import MakeTopic, committed, produce, read_values
from penstock.kafka import Cluster
from standalone import StandaloneCluster

pytestmark = pytest.mark.long

RECORDS = 20

# The first attempt waits for the copy, which has fenced it by then, and ends before the copy does.
APP = """
import time
from pathlib import Path
from penstock import App

app = App("{group}")

def is_attempt(number):
    try:
        Path("{folder}", f"attempt-{{number}}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

@app.consume("{source}", to="{group}.out", delivery="exactly-once")
def handle(value: int) -> int:
    if value == 5:
        if is_attempt(1):
            while not Path("{folder}", "attempt-2").exists():
                time.sleep(0.05)
        elif is_attempt(2):
            time.sleep(3)
    return value
"""
# A job has one task, so Spark compares its time with a limit, not with those of other tasks.
SPECULATION = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.task.duration.threshold": "1s",
}


def test_a_task_and_its_copy_write_each_output_once_and_the_one_that_was_fenced_is_no_failure(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source = make_topic()
    produce(brokers, source, range(RECORDS))
    (tmp_path / "shop.py").write_text(APP.format(group=group, source=source, folder=tmp_path))
    # Spark never starts the copy on the machine of the first attempt.
    with StandaloneCluster(tmp_path / "spark", hosts=("127.0.0.1", "127.0.0.2")) as spark:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "penstock", "run", "shop:app", "--engine", "spark", "--master", spark.master),
                *(part for name, value in SPECULATION.items() for part in ("--spark-conf", f"{name}={value}")),
                *("--until-caught-up", "--events", "events.jsonl"),
            ],
            cwd=tmp_path,
            env={**os.environ, "PENSTOCK_BROKERS": brokers},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "attempt-2").exists(), "Spark has started a copy"
    assert sorted(int(value or b"") for value in read_values(brokers, f"{group}.out")) == list(range(RECORDS))
    assert committed(cluster, group, source) == {0: RECORDS}
    kinds = [json.loads(line)["event"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert "restarting" not in kinds
    assert kinds.count("finished") == RECORDS, "of the two, one counts"
