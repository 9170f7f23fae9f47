"""Run it with: python -m pytest."""

import struct

import pytest
from customers import CUSTOMER, LETTER, Letter, app

from penstock import Avro, Registry
from penstock.codecs import codec_of
from penstock.testing import Bench

# A registry in memory; whoever names the same one in this process shares it.
REGISTRY = Registry(url="mock://letters")


@pytest.fixture
def bench() -> Bench:
    # Somebody has to register what is written: here it is the test.
    codec_of(Avro(LETTER, register=True), registry=REGISTRY, field="value", topic="letters").get_ready()
    return Bench(app, registry=REGISTRY)


def test_customers_of_both_formats_are_welcomed(bench: Bench) -> None:
    older = {**CUSTOMER, "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}
    written = codec_of(Avro(older, register=True), registry=REGISTRY, field="value", topic="customers")
    bench.produce("customers", written.encode({"id": 8, "name": "Bob"})[0])
    bench.produce("customers.old", struct.pack(">ii", 7, 3) + b"Ann")
    bench.run_until_idle()
    assert sorted(bench.outputs("letters"), key=lambda each: each.customer) == [
        Letter(7, "Willkommen, Ann!"),
        Letter(8, "Willkommen, Bob!"),
    ]


def test_what_is_no_customer_is_set_aside_with_the_reason(bench: Bench) -> None:
    bench.produce("customers.old", struct.pack(">ii", 7, 3) + b"An")
    bench.produce("customers", b'{"id": 7}')
    bench.run_until_idle()
    assert sorted(letter.error_message for letter in bench.dead_letters("customers.dlq")) == [
        "the decoder of the value failed: ValueError: the name should take 3 bytes, and takes 2",
        "the value begins with the byte 0x7b, not 0x00: it was not written with a schema registry",
    ]
