"""The demo's app, written as a user would write it: invoices from orders."""

from dataclasses import dataclass

from penstock import App, Reject, Skip

app = App("shop")


@dataclass
class Order:
    id: int
    customer: str
    product: str
    quantity: int
    unit_cents: int


@dataclass
class Invoice:
    order: int
    customer: str
    total_cents: int


@app.consume("orders", to="invoices", dead_letter="orders.dlq")
def invoice(order: Order) -> Invoice:
    if order.quantity == 0:
        raise Skip("nothing was ordered")
    if order.quantity < 0:
        raise Reject(f"a quantity of {order.quantity} cannot be delivered")
    return Invoice(order.id, order.customer, order.quantity * order.unit_cents)
