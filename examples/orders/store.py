"""An order service: resources, middleware, routing by header, several outputs, delays, a time limit, an event listener.

Run it with `penstock run store:app`, or on Spark with `penstock run store:app --engine spark`.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock import App, Later, Out, Record, Reject
from penstock.events import DeadLettered

app = App("store")
log = logging.getLogger("store")


@dataclass
class Order:
    id: int
    item: str
    amount: int = 1


@app.resource
def prices() -> Iterator[dict[str, int]]:  # once in each process; what comes after the yield would close it
    yield {"pen": 150, "book": 1_250}


@app.around
def timed(record: Record, call: Any) -> Any:  # around every attempt of every handler
    began = time.monotonic()
    try:
        return call()
    finally:
        log.info("%s took %.3f s", record, time.monotonic() - began)


def wait_is_over(record: Record) -> bool:
    return time.time() * 1000 >= record.timestamp_ms + 2_000


@app.on_event(DeadLettered)
def alert(event: DeadLettered) -> None:
    log.warning("%s[%s]@%s: %s", event.topic, event.partition, event.offset, event.reason)


@app.consume(
    "store-orders", when={"type": "created"}, to=["store-receipts", "store-audit"], dead_letter="store-orders.dlq",
    order="key", concurrency=64, timeout="30s", carry_headers=["trace"],
)  # fmt: skip
def create(order: Order, record: Record, prices: dict[str, int]) -> Iterator[Out]:
    if order.item not in prices:
        raise Reject(f"there is no {order.item!r}")
    if order.item == "book" and not wait_is_over(record):
        raise Later("2s")  # a book can be cancelled for two seconds; no attempt is counted
    yield Out({"order": order.id, "cents": prices[order.item] * order.amount}, headers={"type": "receipt"})
    yield Out({"created": order.id}, to="store-audit", key=str(order.id))


@app.consume(
    "store-orders", when={"type": "cancelled"}, to="store-audit", dead_letter="store-orders.dlq",
    order="key", concurrency=64, timeout="30s",
)  # fmt: skip
def cancel(order: Order) -> dict[str, int]:
    return {"cancelled": order.id}
