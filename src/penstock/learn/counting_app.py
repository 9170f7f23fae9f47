"""The app of the lesson about Spark: an ordinary handler, which says in which process it ran."""

import os
from dataclasses import dataclass

from penstock import App, Record

app = App("learn")


@dataclass
class Order:
    id: int
    cents: int


@dataclass
class Invoice:
    order: int
    cents: int
    partition: int
    process: int


@app.consume("orders", to="invoices", order="key")
def invoice(order: Order, record: Record) -> Invoice:
    return Invoice(order.id, order.cents, record.partition, os.getpid())
