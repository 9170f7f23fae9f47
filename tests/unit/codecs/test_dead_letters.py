"""Each kind of wrong value becomes a dead letter at once, with unchanged bytes and a reason in words."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from fuzzing import CHAIN
from penstock import App, Avro, JsonSchema, Protobuf, Registry
from penstock.codecs import codec_of
from penstock.testing import Bench
from protobuf_messages import Item, Order

URL = "mock://wrong-values"
SCHEMA = {
    "type": "record",
    "name": "Customer",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
}
READER = {"type": "record", "name": "Customer", "fields": [{"name": "id", "type": "string"}]}
JSON = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
MB = 1_000_000


@dataclass
class Customer:
    id: int
    name: str


class Model(BaseModel):
    id: int
    name: str


def written(format_: Any, value: Any, topic: str) -> bytes:
    return codec_of(format_, registry=Registry(url=URL), field="value", topic=topic).encode(value)[0]


GOOD = written(Avro(SCHEMA, register=True), {"id": 7, "name": "Ann"}, "customers")
CHAINED = written(Avro(CHAIN, register=True), {"next": None}, "chains")[:5]
STRICT = written(JsonSchema(JSON, register=True), {"id": 1}, "strict")[:5]
SENT = written(Protobuf(Order, register=True), Order(customer="Ann"), "orders")


def nested(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = b"\x1a" + _length(len(data)) + data
    return data


def _length(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


NO_ID = "the schema id 999 is not in the registry at mock://wrong-values"
NOT_OURS = "the value begins with the byte 0x7b, not 0x00: it was not written with a schema registry"
DEEP = "it is nested too deeply"


@pytest.mark.parametrize(
    ("how", "hint", "value", "reason"),
    [
        pytest.param(Avro(), dict, b"\x00\x00\x00\x03\xe7x", NO_ID, id="unknown schema id"),
        pytest.param(Avro(), dict, b'{"id": 7}', NOT_OURS, id="wrong magic byte"),
        pytest.param(Avro(), dict, GOOD[:3], "ends inside its schema id, after 3 bytes", id="truncated id"),
        pytest.param(
            Avro(),
            dict,
            GOOD[:-1],
            "expected string, but the value ends there (2 of 3 bytes) - at `$.name`",
            id="truncated Avro",
        ),
        pytest.param(
            Protobuf(Order),
            None,
            SENT[:-1],
            "expected string, but the value ends there (2 of 3 bytes) - at `$.customer`",
            id="truncated Protobuf",
        ),
        pytest.param(
            Avro(READER), dict, GOOD, "expected string, was written as int - at `$.id`", id="incompatible reader"
        ),
        pytest.param(None, dict, b"{", "Input data was truncated", id="invalid JSON"),
        pytest.param(None, Customer, b'{"id": 7', "Input data was truncated", id="invalid JSON of a dataclass"),
        pytest.param(None, Model, b"nope", "Invalid JSON", id="invalid JSON of a model"),
        pytest.param(JsonSchema(), dict, STRICT + b"{]", "is malformed", id="invalid JSON of a schema"),
        pytest.param(None, Customer, b'{"id": 7}', "missing required field `name`", id="missing field"),
        pytest.param(None, Model, b'{"id": 7}', "name: Field required", id="missing field of a model"),
        pytest.param(
            JsonSchema(), dict, STRICT + b"{}", "'id' is a required property - at `$`", id="missing field of a schema"
        ),
        pytest.param(
            None, Customer, b'{"id": "7", "name": ""}', "Expected `int`, got `str` - at `$.id`", id="wrong type"
        ),
        pytest.param(
            None, Model, b'{"id": "x", "name": ""}', "id: Input should be a valid integer", id="wrong type of a model"
        ),
        pytest.param(
            JsonSchema(),
            dict,
            STRICT + b'{"id":"x"}',
            "'x' is not of type 'integer' - at `$.id`",
            id="wrong type of a schema",
        ),
        pytest.param(
            Avro(),
            Customer,
            written(Avro(READER, register=True), {"id": "x"}, "others"),
            "Expected `int`, got `str` - at `$.id`",
            id="wrong type of Avro",
        ),
        pytest.param(
            None, Customer, b'{"id": 1, "name": "' + b"x" * (50 * MB), "Input data was truncated", id="50 MB of JSON"
        ),
        pytest.param(
            Avro(),
            dict,
            GOOD + b"x" * (50 * MB),
            "50,000,000 of its 50,000,010 bytes are left over",
            id="50 MB of Avro",
        ),
        pytest.param(
            Protobuf(Order),
            None,
            SENT + b"\x12" + _length(60 * MB) + b"x" * (50 * MB),
            "(50,000,000 of 60,000,000 bytes) - at `$.customer`",
            id="50 MB of Protobuf",
        ),
        pytest.param(None, Any, b"[" * MB, "ecursion", id="deep JSON"),
        pytest.param(JsonSchema(), dict, STRICT + b"[" * MB, DEEP, id="deep JSON of a schema"),
        pytest.param(Avro(), dict, CHAINED + b"\x02" * MB, DEEP, id="deep Avro"),
        pytest.param(Protobuf(Item, schema_id=None), None, nested(5_000), DEEP, id="deep Protobuf"),
    ],
)
def test_a_wrong_value_is_a_dead_letter_with_its_bytes_and_a_reason(
    how: Any, hint: Any, value: bytes, reason: str
) -> None:
    app = App("shop", registry=URL)
    called = []

    def handle(value: Any) -> None:
        called.append(value)

    if hint is not None:
        handle.__annotations__["value"] = hint
    app.consume("records", value=how, dead_letter="dlq")(handle)
    bench = Bench(app)
    bench.produce("records", value)
    bench.run_until_idle()
    (letter,) = bench.dead_letters("dlq")
    assert letter.value == value
    assert (letter.error_type, letter.attempts) == ("Undecodable", 1)
    assert reason in letter.error_message
    assert not called
