"""Charges orders and sends receipts."""

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
    """Call the payment service; tests replace this function."""
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
