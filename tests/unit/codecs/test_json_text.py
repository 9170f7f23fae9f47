"""Decoded values as JSON and back: every value that the terminal shows can be produced again."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Avro, JsonSchema, Protobuf, Registry
from penstock.codecs import codec_of
from penstock.codecs.json_text import json_encoder, to_json
from penstock.codecs.schema_codec import WriterSchema
from penstock.core.failures.outcome import Undecodable
from protobuf_messages import Bill, Money

URL = Registry(url="mock://forms")


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        field("id", "long"),
        field("at", {"type": "long", "logicalType": "timestamp-micros"}),
        field("day", ["null", {"type": "int", "logicalType": "date"}]),
        field("hour", {"type": "int", "logicalType": "time-millis"}),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        field("digest", {"type": "fixed", "name": "Digest", "size": 2}),
        field("raw", ["null", "bytes", "string"]),
        field("tags", {"type": "map", "values": {"type": "array", "items": ["int", "string"]}}),
        field("state", {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}),
    ],
}
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
orders = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "at": moments,
        "day": st.none() | st.dates(date(1971, 1, 1), date(2100, 1, 1)),
        "hour": st.times().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)),
        "price": st.decimals(-99999, 99999, places=2),
        "digest": st.binary(min_size=2, max_size=2),
        "raw": st.none() | st.binary(),
        "tags": st.dictionaries(st.text(), st.lists(st.integers(-9, 9) | st.text())),
        "state": st.sampled_from(["NEW", "PAID"]),
    }
)


@settings(max_examples=60)
@given(orders)
def test_avro_as_json_is_written_as_it_was(order: dict[str, Any]) -> None:
    bare = Avro(ORDER, schema_id=None)
    codec = codec_of(bare, registry=None, field="value", topic="t")
    text = json.dumps(to_json(codec.decode(codec.encode(order)[0], None)))
    written, _ = json_encoder(bare, registry=None, topic="t")(json.loads(text))
    assert codec.decode(written, None) == codec.decode(codec.encode(order)[0], None)


@given(st.integers(0, 2**31 - 1), st.text(), st.lists(st.text()))
def test_protobuf_as_json_is_written_as_it_was(number: int, currency: str, tags: list[str]) -> None:
    bill = Bill(number=number, total=Money(cents=number, currency=currency), tags=tags)
    bare = Protobuf(Bill, schema_id=None)
    written, _ = json_encoder(bare, registry=None, topic="t")(json.loads(json.dumps(to_json(bill))))
    assert codec_of(bare, registry=None, field="value").decode(written, None) == bill


@pytest.mark.parametrize(
    ("format_", "value"),
    [
        (Avro(ORDER, schema_id=None), {"id": "x"}),
        (Avro(ORDER, schema_id=None), 7),
        (Protobuf(Bill, schema_id=None), {"number": "x"}),
        (Protobuf(Bill, schema_id=None), {"nothing": 1}),
        (Protobuf(Bill, schema_id=None), 7),
        (JsonSchema({"type": "object"}, schema_id=None), 7),
    ],
)
def test_json_that_does_not_fit_is_refused(format_: Any, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        json_encoder(format_, registry=None, topic="t")(value)


@dataclass
class Point:
    x: int
    when: time


def test_values_of_all_kinds_are_json() -> None:
    value = {"point": Point(1, time(12)), "ids": {UUID(int=1)}, "price": Decimal("1.50"), "raw": b"\xff", "odd": object}
    assert to_json(value) == {
        "point": {"x": 1, "when": "12:00:00"},
        "ids": ["00000000-0000-0000-0000-000000000001"],
        "price": "1.50",
        "raw": {"hex": "ff"},
        "odd": "<class 'object'>",
    }


# The facts about a schema id that Spark needs.


def test_the_schema_of_an_id_has_the_schemas_that_it_refers_to() -> None:
    avro: Any = codec_of(Avro(ORDER, register=True), registry=URL, field="value", topic="orders")
    (id_bytes,) = {avro.encode(_sample())[0][:5]}
    found = json.loads(avro.writer_schema(id_bytes).schema)
    assert [each["name"] for each in found["fields"]] == [each["name"] for each in ORDER["fields"]]
    assert list(avro.schema_ids("orders")) == [id_bytes]
    assert list(avro.schema_ids("nothing")) == []
    bill: Any = codec_of(Protobuf(Bill, register=True), registry=URL, field="value", topic="bills")
    data = bill.encode(Bill(number=7))[0]
    assert bill.writer_schema(data[:5]) == WriterSchema(message_indexes=(b"\x02\x02",))
    assert data[5:7] == b"\x02\x02"
    with pytest.raises(Undecodable, match="of type PROTOBUF, not AVRO"):
        avro.writer_schema(data[:5])
    with pytest.raises(Undecodable, match="is not in the registry"):
        avro.writer_schema(b"\x00\x00\x00\x03\xe7")


def _sample() -> dict[str, Any]:
    return {
        "id": 1,
        "at": datetime(2030, 1, 1, tzinfo=UTC),
        "day": None,
        "hour": time(1),
        "price": Decimal("1.50"),
        "digest": b"ab",
        "raw": None,
        "tags": {},
        "state": "NEW",
    }
