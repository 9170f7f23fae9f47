"""Charges orders, and sends out receipts."""

from dataclasses import dataclass

from penstock import App, Reject, Retry

app = App("shop")


@dataclass
class Order:
    id: int
    cents: int


@dataclass
class Receipt:
    order: int
    charge: str


def charge(order: Order) -> str:
    """Ask the payment service; a test puts its own in its place."""
    raise NotImplementedError


@app.consume(
    "orders",
    order="key",
    to="receipts",
    dead_letter="orders.dlq",
    retry=Retry(attempts=3, first="10s", factor=2),
)
def pay(order: Order) -> Receipt:
    if order.cents <= 0:
        raise Reject("nothing to charge")
    return Receipt(order.id, charge(order))
