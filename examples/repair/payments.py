"""Sums payments. Some producers write amounts as "12,50": those became dead letters, until `amount_of` learned it.

Run it with `penstock run payments:app`. To send the dead letters back: `penstock dlq replay payments.dlq --execute`.
"""

import os
from dataclasses import dataclass

from penstock import App, Reject

app = App("payments")
KNOWS_COMMAS = "PAYMENTS_OLD" not in os.environ
"""False is the version before the repair."""


@dataclass
class Payment:
    id: int
    amount: str


@dataclass
class Booking:
    payment: int
    cents: int


def amount_of(text: str) -> int:
    """Return the amount in cents."""
    whole, _, rest = (text.replace(",", ".") if KNOWS_COMMAS else text).partition(".")
    if not whole.isdecimal() or (rest and not rest.isdecimal()):
        raise Reject(f"{text!r} is not an amount")
    return int(whole) * 100 + int(f"{rest:<02}"[:2].replace(" ", "0"))


@app.consume("payments", to="bookings", dead_letter="payments.dlq", order="key")
def book(payment: Payment) -> Booking:
    return Booking(payment.id, amount_of(payment.amount))
