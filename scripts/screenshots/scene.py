"""What the pictures show: a Kafka, groups that lag, an app with load, failures and a rebalance."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster
from penstock.ops.dead_letters import dead_letter_topics
from penstock.ops.runs import alive

APP = """
import asyncio, random, time
from penstock import App, Reject, Retry

app = App("shop")

@app.consume("orders", to="invoices", dead_letter="orders.dlq", order="key", concurrency=48,
             retry=Retry(attempts=4, first="4s", factor=3))
def invoice(order: dict) -> dict:
    time.sleep(random.choice([0.02, 0.05, 0.05, 0.08, 0.4]))
    if order["quantity"] <= 0:
        raise Reject(f"order {order['id']} has the quantity {order['quantity']}")
    if order["customer"] == "c-404":
        raise LookupError(f"no such customer: {order['customer']}")
    if random.random() < 0.004:
        raise TimeoutError("the tax service did not answer within 2 s")
    return {"order": order["id"], "total": order["quantity"] * order["unit_cents"] / 100}

@app.consume("payments", group="payments", concurrency="auto", max_concurrency=200)
async def settle(payment: dict) -> None:
    await asyncio.sleep(random.uniform(0.05, 0.12))
"""
PARTITIONS = {"orders": 12, "payments": 6, "clicks": 24, "returns": 6, "shipments": 8}
# Groups that no app runs: what they have committed of the topic, as a part of its log.
BEHIND = {
    "warehouse": ("orders", 0.86),
    "analytics": ("clicks", 0.35),
    "fraud": ("payments", 0.97),
    "mailer": ("shipments", 1.0),
    "returns-desk": ("returns", 1.0),
    "search-index": ("clicks", 0.998),
}
_WAIT_SECONDS = 300.0
_PRODUCER = {"linger.ms": 20, "partitioner": "murmur2_random"}
# Records a second.
_RATES = {"orders": 260, "payments": 320, "clicks": 120, "returns": 8, "shipments": 30}


@dataclass(frozen=True)
class Scene:
    brokers: str
    folder: Path


@contextmanager
def scene(folder: Path, *, seconds: float) -> Iterator[Scene]:
    """Yield when the app has run under load for so long."""
    kafka = Embedded(folder / "kafka")
    with ExitStack() as stack:
        stack.callback(kafka.down)
        kafka.up(UpOptions(port=0))
        brokers = str(kafka.bootstrap())
        cluster = Cluster(brokers)
        for name, partitions in PARTITIONS.items():
            config = {"retention.ms": str(7 * 24 * 3600 * 1000)}
            cluster.create_topics([name], partitions=partitions, config=config)
        _write(brokers, 40)
        _commit(cluster)
        (folder / "shop.py").write_text(APP, "utf-8")
        stack.enter_context(_app(brokers, folder))
        _wait(lambda: bool(alive("shop")))
        stack.enter_context(_load(brokers))
        time.sleep(seconds / 2)
        with _app(brokers, folder):  # a second member joins, and leaves again
            time.sleep(seconds / 4)
        time.sleep(seconds / 4)
        _wait(lambda: dead_letter_topics(Cluster(brokers)).get("orders.dlq", 0) > 20)  # noqa: PLR2004 - some
        yield Scene(brokers, folder)


@contextmanager
def _app(brokers: str, folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "penstock", "run", "shop:app", "--brokers", brokers]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=os.environ, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_WAIT_SECONDS)


def _value(topic: str, number: int, chance: random.Random) -> tuple[bytes, bytes]:
    customer = "c-17" if chance.random() < 0.12 else f"c-{chance.randrange(400, 900)}"  # noqa: PLR2004 - a hot key
    quantity = 0 if chance.random() < 0.004 else chance.randrange(1, 9)  # noqa: PLR2004 - some are bad
    body = {"id": number, "customer": customer, "quantity": quantity, "unit_cents": chance.randrange(199, 9_900)}
    return customer.encode(), json.dumps(body if topic == "orders" else {"id": number, "customer": customer}).encode()


def _write(brokers: str, seconds: int) -> None:
    """Write what the logs hold at the beginning."""
    producer, chance = Producer(_PRODUCER | {"bootstrap.servers": brokers}), random.Random(7)  # noqa: S311
    for topic, rate in _RATES.items():
        for number in range(rate * seconds if topic in {"clicks", "shipments"} else rate):
            key, value = _value(topic, number, chance)
            producer.produce(topic, value, key=key, headers=[("type", b"order.created"), ("source", b"web")])
            producer.poll(0)
    producer.flush(60)


@contextmanager
def _load(brokers: str) -> Iterator[None]:
    ended = threading.Event()

    def write() -> None:
        producer, chance, number = Producer(_PRODUCER | {"bootstrap.servers": brokers}), random.Random(8), 100_000  # noqa: S311
        while not ended.wait(0.1):
            for topic, rate in _RATES.items():
                for _ in range(rate // 10):
                    number += 1
                    key, value = _value(topic, number, chance)
                    producer.produce(topic, value, key=key, headers=[("type", b"order.created"), ("source", b"web")])
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _commit(cluster: Cluster) -> None:
    for group, (topic, part) in BEHIND.items():
        ends = cluster.end_offsets([(topic, number) for number in range(PARTITIONS[topic])])
        offsets = [TopicPartition(topic, number, int(end * part)) for (_, number), end in ends.items()]
        asked = cluster.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)])
        for future in asked.values():
            future.result(timeout=60)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("The scene did not come up.")
        time.sleep(0.3)
