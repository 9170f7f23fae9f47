"""The same decoders in Spark's tasks, on a real broker with a real registry."""

import struct
from dataclasses import dataclass
from typing import Any

from kafka_helpers import CatchUp, MakeTopic, produce, read_records
from penstock import App, Avro, Record, Registry
from penstock.codecs import codec_of

TOO_SHORT = (
    "the decoder of the value failed: error: unpack_from requires a buffer of at least 8 bytes for unpacking "
    "8 bytes at offset 0 (actual buffer size is {})"
)

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
}
NEWER = {**CUSTOMER, "fields": [*CUSTOMER["fields"], {"name": "country", "type": "string", "default": "DE"}]}


def test_customers_are_decoded_in_tasks_by_a_user_s_decoder_and_as_avro(
    brokers: str, registry: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    own, avro, out, dlq = make_topic(2), make_topic(2), f"{group}.out", f"{group}.dlq"

    @dataclass
    class Customer:
        id: int
        name: str
        country: str = "DE"

    def decode(data: bytes) -> Customer:
        number, length = struct.unpack_from(">ii", data)
        return Customer(number, data[8 : 8 + length].decode())

    app = App(group, registry=registry)

    @app.consume(own, value=decode, key=str, to=out, dead_letter=dlq)
    def by_own(customer: Customer, key: str) -> str:
        return f"{key} {customer.id} {customer.name} {customer.country}"

    @app.consume(avro, value=Avro(NEWER), to=out, to_value=Avro(NEWER, register=True), dead_letter=dlq)
    async def as_avro(customer: Customer) -> Any:
        return customer

    settings = Registry(url=registry)
    written, _ = codec_of(Avro(CUSTOMER, register=True), registry=settings, field="value", topic=avro).encode(
        {"id": 8, "name": "Bob"}
    )
    for partition in range(2):
        produce(brokers, own, [struct.pack(">ii", 7, 3) + b"Ann", b"?"], key=b"k", partition=partition)
        produce(brokers, avro, [written, written[:-1], b"\x00\x00\x0f\x42\x3fx"], partition=partition)
    catch_up(app)

    outputs = [record.value or b"" for record in read_records(brokers, out)]
    adapter = codec_of(Avro(), registry=settings, field="value")
    assert [value for value in outputs if not value.startswith(b"\x00")] == [b"k 7 Ann DE"] * 2
    assert [adapter.decode(value, None) for value in outputs if value.startswith(b"\x00")] == [
        {"id": 8, "name": "Bob", "country": "DE"}
    ] * 2
    letters = {reason_of(letter) for letter in read_records(brokers, dlq)}
    assert letters == {
        (
            b"?",
            TOO_SHORT.format(1),
        ),
        (written[:-1], "expected string, but the value ends there (2 of 3 bytes) - at `$.name`"),
        (b"\x00\x00\x0f\x42\x3fx", f"the schema id 999999 is not in the registry at {registry}"),
    }


def reason_of(letter: Record) -> tuple[bytes | None, str]:
    return letter.value, (dict(letter.headers)["penstock-dlq-error-message"] or b"").decode()
