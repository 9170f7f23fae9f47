"""The app that the files in deploy/ run: invoices from orders. Replace it with yours."""

from dataclasses import dataclass

from penstock import App, Reject, Retry

app = App("shop")


@dataclass
class Order:
    id: int
    quantity: int
    unit_cents: int


@dataclass
class Invoice:
    order: int
    total: int


@app.consume("orders", to="invoices", dead_letter="orders.dlq", order="key", concurrency=64, retry=Retry(attempts=5))
def invoice(order: Order) -> Invoice:
    if order.quantity <= 0:
        raise Reject(f"a quantity of {order.quantity} cannot be invoiced")
    return Invoice(order.id, order.quantity * order.unit_cents)
