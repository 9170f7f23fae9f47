"""The example in examples/orders: its own tests, and one run of it on each engine with a real broker."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import penstock
from kafka_helpers import WAIT_SECONDS, read_records
from penstock.core.failures.outcome import ProducerRecord
from penstock.kafka import Cluster
from penstock.ops.produce_records import produce

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders"
ENGINES = {"local": range(100), "spark": range(100, 200)}


def test_its_own_tests_pass() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_engines_share_the_work(brokers: str, cluster: Cluster) -> None:
    cluster.create_topics(["store-orders"], partitions=2)
    for engine, numbers in ENGINES.items():
        produce(cluster, map(order, numbers), progress=lambda _: None)
        run(brokers, engine)
    audit = Counter(record.value for record in read_records(brokers, "store-audit"))
    assert audit == Counter(audited(number) for number in range(200) if number % 10 != 7)
    receipts = read_records(brokers, "store-receipts")
    assert sorted(json.loads(record.value or b"")["order"] for record in receipts) == [
        number for number in range(200) if number % 10 not in (7, 9)
    ]
    assert all(dict(record.headers)["trace"] == b"t" for record in receipts)
    letters = read_records(brokers, "store-orders.dlq")
    assert sorted(json.loads(record.value or b"")["id"] for record in letters) == list(range(7, 200, 10))


def order(number: int) -> ProducerRecord:
    """Of ten orders, one is for a car, which the store does not have, one is cancelled, and one is for a book."""
    item = {7: "car", 3: "book"}.get(number % 10, "pen")
    kind = b"cancelled" if number % 10 == 9 else b"created"
    value = json.dumps({"id": number, "item": item}).encode()
    return ProducerRecord("store-orders", b"c%d" % (number % 5), value, (("type", kind), ("trace", b"t")))


def audited(number: int) -> bytes:
    return json.dumps({"cancelled" if number % 10 == 9 else "created": number}, separators=(",", ":")).encode()


def run(brokers: str, engine: str) -> None:
    command = [sys.executable, "-m", "penstock", "run", "store:app", "--engine", engine, "--until-caught-up"]
    done = subprocess.run(
        [*command, "-b", brokers], cwd=EXAMPLE, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
