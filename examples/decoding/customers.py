"""Customers, as a format of one's own and as Avro, become welcome letters in Avro."""

import struct
from dataclasses import dataclass

from penstock import App, Avro

# penstock up --registry, then: export PENSTOCK_REGISTRY=http://127.0.0.1:8081/apis/ccompat/v7
app = App("welcome")

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "long"},  # was an int once
        {"name": "name", "type": "string"},
        {"name": "country", "type": "string", "default": "DE"},  # older records do not have it
    ],
}
LETTER = {
    "type": "record",
    "name": "Letter",
    "fields": [{"name": "customer", "type": "long"}, {"name": "text", "type": "string"}],
}


@dataclass
class Customer:
    id: int
    name: str
    country: str = "DE"


@dataclass
class Letter:
    customer: int
    text: str


def customer_of(data: bytes) -> Customer:
    """The number and the length of the name, four bytes each, then the name."""
    number, length = struct.unpack_from(">ii", data)
    if len(data) != 8 + length:
        raise ValueError(f"the name should take {length} bytes, and takes {len(data) - 8}")
    return Customer(number, data[8:].decode())


@app.consume("customers.old", value=customer_of, to="letters", to_value=Avro(LETTER), dead_letter="customers.dlq")
def welcome_old(customer: Customer) -> Letter:
    return welcome(customer)


@app.consume("customers", value=Avro(CUSTOMER), to="letters", to_value=Avro(LETTER), dead_letter="customers.dlq")
def welcome(customer: Customer) -> Letter:
    greeting = "Willkommen" if customer.country == "DE" else "Welcome"
    return Letter(customer.id, f"{greeting}, {customer.name}!")
