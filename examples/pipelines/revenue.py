"""One pipeline with two outputs: the revenue per minute in a topic, and every order in a table.

penstock up
python examples/pipelines/revenue.py                                   # writes 600 orders to Kafka
cd examples/pipelines && penstock run revenue:app --engine spark       # runs until Ctrl+C
penstock run revenue:app --engine spark --from 2026-01-01 --to latest  # runs once over a range
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import App, Table, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LAKE = str(Path.home() / "penstock-lake")

app = App("revenue")


@dataclass
class Order:
    id: int
    customer: str
    amount: float
    at: datetime
    currency: str = "EUR"


@app.pipeline(
    "orders",
    value=Order,
    dead_letter="orders.dead",
    expect={"amount > 0": "dead_letter"},
    to={"minutes": Topic("revenue", key="currency"), "orders": Table("orders", path=LAKE, partition_by=["currency"])},
)
def revenue(orders: "DataFrame") -> "Mapping[str, DataFrame]":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the module itself must not need Spark

    minutes = orders.withWatermark("at", "30 seconds").groupBy(F.window("at", "1 minute"), "currency")
    return {
        "minutes": minutes.agg(F.sum("amount").alias("total")).selectExpr(
            "window.start AS minute", "currency", "total"
        ),
        "orders": orders.select("id", "customer", "amount", "at", "currency"),
    }


def main() -> None:
    """Write the orders of the last ten minutes, and one record that is not an order."""
    from penstock.devkit import embedded_brokers  # noqa: PLC0415
    from penstock.kafka import Cluster, make_producer  # noqa: PLC0415

    brokers = embedded_brokers()
    if brokers is None:
        sys.exit("Start Kafka first: penstock up")
    Cluster(brokers).create_topics(["orders"], partitions=4)
    producer = make_producer(brokers, settings={})
    now = datetime.now(UTC)
    for number in range(600):
        order = {
            "id": number,
            "customer": f"customer-{number % 7}",
            "amount": round(number % 50 + 0.99, 2),
            "at": (now - timedelta(seconds=600 - number)).isoformat(),
        }
        producer.produce("orders", key=order["customer"].encode(), value=json.dumps(order).encode())
    producer.produce("orders", value=b"this is not an order")
    producer.flush()


if __name__ == "__main__":
    main()
