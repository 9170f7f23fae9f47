"""The app of the lesson about Spark: an ordinary handler, which says in which process it ran."""

import os
from dataclasses import dataclass

from penstock import App, Record

app = App("learn")


@dataclass
class LessonOrder:
    id: int
    cents: int


@dataclass
class LessonInvoice:
    order: int
    cents: int
    partition: int
    process: int


@app.consume("orders", to="invoices", order="key")
def invoice(order: LessonOrder, record: Record) -> LessonInvoice:
    return LessonInvoice(order.id, order.cents, record.partition, os.getpid())
