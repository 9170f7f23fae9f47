"""A backlog that a slow handler cannot keep up with stays in Kafka: memory does not grow with it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, wait_for
from penstock.kafka import make_producer

RECORDS = 300_000
# Random values do not compress, so the client's limits in bytes are limits of the buffered records.
VALUES = [os.urandom(100) for _ in range(10_000)]
# As Python objects, a record of this size with its key is more than 400 bytes (the object 112, its value 133, its key
# 40, its offset 32, its entries in lanes and trackers the rest), and another 100 or more in the client's buffer. So the
# whole backlog would be more than 120 MB.
MOST_MB = 60

APP = """
import time
from penstock import App

app = App("{group}")

@app.consume("{topic}", order="key", concurrency=8)
def slow(value: bytes) -> None:
    time.sleep(0.01)
"""


@pytest.fixture
def consumer(tmp_path: Path, brokers: str, group: str, source: str) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "backlog.py").write_text(APP.format(group=group, topic=source))
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock", "run", "backlog:app", "--json", "--events", "events.jsonl"],
        cwd=tmp_path,
        env={**os.environ, "PENSTOCK_BROKERS": brokers},
        stdout=subprocess.DEVNULL,
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def source(make_topic: MakeTopic) -> str:
    return make_topic(4)


def test_a_backlog_stays_in_kafka_and_not_in_memory(
    brokers: str, source: str, tmp_path: Path, consumer: subprocess.Popen[bytes]
) -> None:
    wait_for(lambda: reported(tmp_path, "assigned") == 4, "an assignment")
    idle = megabytes(consumer.pid, "VmRSS")
    producer = make_producer(brokers, settings={"queue.buffering.max.messages": RECORDS})
    for number in range(RECORDS):
        producer.produce(source, value=VALUES[number % 10_000], key=b"key-%d" % (number % 1_000), partition=number % 4)
    assert producer.flush(WAIT_SECONDS) == 0
    # Long enough for a consumer that buffers to have read everything.
    wait_for(lambda: reported(tmp_path, "finished") > 5_000, "some work")
    growth = megabytes(consumer.pid, "VmHWM") - idle
    assert growth < MOST_MB, f"{growth:.0f} MB more than idle"


def reported(folder: Path, kind: str) -> int:
    path = folder / "events.jsonl"
    return path.read_text().count(f'"event":"{kind}"') if path.exists() else 0


def megabytes(pid: int, field: str) -> float:
    """``VmRSS`` is what a process has now, ``VmHWM`` the most it ever had."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status[field].split()[0]) / 1024
