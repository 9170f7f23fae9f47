"""Reads customers in a custom binary format and in Avro, and writes welcome letters in Avro."""

import struct
from dataclasses import dataclass

from penstock import App, Avro

# penstock up --registry, then: export PENSTOCK_REGISTRY=http://127.0.0.1:8081/apis/ccompat/v7
app = App("welcome")

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "long"},  # an int in older records
        {"name": "name", "type": "string"},
        {"name": "country", "type": "string", "default": "DE"},  # missing in older records
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
    """Decode four bytes with the id, four bytes with the length of the name, and the name."""
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
