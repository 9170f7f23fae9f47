"""Avro, JSON Schema and Protobuf as typed columns, with a real registry."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import DataFrame, SparkSession

from fuzzing import REGISTRY, inputs, targets
from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, of_kind, produce, read_records
from penstock import App, Avro, JsonSchema, Protobuf, Record, Registry, Source, Table
from penstock.app.pipelines import Span
from penstock.codecs import codec_of
from penstock.core.failures.outcome import Undecodable
from penstock.core.reports import events
from penstock.errors import HandlerError
from penstock.kafka import make_producer
from penstock.spark.pipelines.decoded_columns import REASON, decoded
from penstock.spark.pipelines.writer_schemas import Schemas
from protobuf_messages import Bill, Money, NewerBill, Refund
from tables import rows

# A text of 2^30 bytes, and an array of as many items, as the Avro of the fuzzing writes them.
HUGE = [b"\x0e\x02\x80\x80\x80\x80\x08", b"\x0e\x02\x00\x02\x80\x80\x80\x80\x08"]

STRATEGIES = {"topic": topic_subject_name_strategy, "record": record_subject_name_strategy}


def customer(*fields: dict[str, Any], name: str = "Customer") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


OLD = customer(field("id", "int"), field("name", "string"))
NEW = customer(
    field("id", "long"),
    field("full_name", "string", aliases=["name"]),
    field("vip", "boolean", default=False),
    field("since", ["null", {"type": "int", "logicalType": "date"}], default=None),
)
CANNOT = "it was written with a schema that cannot be read as this one"
# A schema that the reader cannot read: the name is a number.
OTHER = customer(field("id", "int"), field("name", "long"))


@pytest.fixture
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as client:
        yield client


def by_theirs(client: SchemaRegistryClient, schema: Any, value: Any, topic: str, subject: str = "topic") -> bytes:
    """The bytes that Confluent's serializer writes."""
    conf = {"subject.name.strategy": STRATEGIES[subject], "normalize.schemas": False}
    context = SerializationContext(topic, MessageField.VALUE, [])
    return bytes(AvroSerializer(client, json.dumps(schema), conf=conf)(value, context) or b"")


def reason_of(letter: Record) -> tuple[bytes | None, str]:
    return letter.value, (dict(letter.headers)["penstock-dlq-error-message"] or b"").decode()


def test_avro_of_several_schemas_in_one_batch_is_one_set_of_typed_columns(
    brokers: str,
    registry: str,
    client: SchemaRegistryClient,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    source, dlq = make_topic(), f"{group}.dlq"
    old = by_theirs(client, OLD, {"id": 1, "name": "Ann"}, source)
    # Registered under another subject, so that the app cannot know the schema before the record.
    renamed = {**NEW, "name": f"Customer_{group[6:]}"}
    new = by_theirs(client, renamed, {"id": 2**40, "full_name": "Bob", "vip": True, "since": None}, source, "record")
    other = by_theirs(client, OTHER, {"id": 3, "name": 4}, source, "record")
    bad = [old[:-1], old + b"!!", other, b"\x00\x00\x0f\x42\x3fx", b'{"id":7}', b"\x00\x00", b"", None]
    produce(brokers, source, [old, *bad, new, old])
    producer = make_producer(brokers, settings={})
    in_headers, headers = codec_of(
        Avro(OLD, schema_id="headers", register=True), registry=Registry(url=registry), field="value", topic=source
    ).encode({"id": 5, "name": "Eve"})
    producer.produce(source, in_headers, headers=list(headers))
    assert producer.flush(WAIT_SECONDS) == 0
    app = App(group, registry=registry)
    reader = {**NEW, "aliases": [renamed["name"]]}
    to = Table("customers", path=str(tmp_path), format="parquet")

    @app.pipeline(source, value=Avro(reader), to=to, dead_letter=dlq)
    def customers(them: DataFrame) -> DataFrame:
        assert dict(them.dtypes)["id"] == "bigint"
        assert dict(them.dtypes)["since"] == "date"
        return them.select("id", "full_name", "vip", "since", "_offset")

    seen = catch_up(app)
    expected = [
        {"id": 1, "full_name": "Ann", "vip": False, "_offset": 0},
        {"id": 2**40, "full_name": "Bob", "vip": True, "_offset": 9},
        {"id": 1, "full_name": "Ann", "vip": False, "_offset": 10},
        {"id": 5, "full_name": "Eve", "vip": False, "_offset": 11},
    ]

    def read() -> list[dict[str, Any]]:
        table = spark.read.parquet(f"{tmp_path}/customers").drop("batch")
        return sorted(rows(table), key=lambda row: row["_offset"])

    assert read() == expected
    (stopped,) = of_kind(seen, events.Stopped)
    assert (stopped.read, stopped.written, stopped.dead_lettered) == (12, 4, 8)
    assert [reason_of(letter) for letter in read_records(brokers, dlq)] == [
        (bad[0], "expected string, but the value ends there (2 of 3 bytes) - at `$.name`"),
        (bad[1], "2 of its 12 bytes are left over: it was written with another schema"),
        (bad[2], f"{CANNOT}: expected string, was written as long - at `$.full_name`"),
        (bad[3], f"the schema id 999999 is not in the registry at {registry}"),
        (bad[4], "the value begins with the byte 0x7b, not 0x00: it was not written with a schema registry"),
        (bad[5], "the value ends inside its schema id, after 2 bytes"),
        (bad[6], "the value is empty: it was not written with a schema registry"),
        (bad[7], "the value is null (a tombstone); to accept tombstones, declare the value with `| None`"),
    ]
    # A range with such a schema and without unreadable records.
    catch_up(app, span=Span({(source, 0): 9}, {(source, 0): 11}))
    assert [row["_offset"] for row in read()] == [0, 9, 9, 10, 10, 11]


JSON = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "items": {"type": "array", "items": {"$ref": "#/definitions/Item"}},
    },
    "required": ["id"],
    "definitions": {"Item": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}},
}


def test_json_schema_and_protobuf_are_typed_columns_too(
    brokers: str, registry: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    orders, bills, settings = make_topic(), make_topic(), Registry(url=registry)
    order = codec_of(JsonSchema(JSON, register=True), registry=settings, field="value", topic=orders)
    prefix = order.encode({"id": 1})[0][:5]
    bad_orders = [prefix + b'{"id":"x"}', prefix + b'{"id":1,"items":[{}]}', prefix + b"{", b'{"id":1}']
    produce(brokers, orders, [order.encode({"id": 1, "items": [{"sku": "a"}, {"sku": "b"}]})[0], *bad_orders])
    older = codec_of(Protobuf(Bill, register=True), registry=settings, field="value", topic=bills)
    bill = older.encode(Bill(number=7, total=Money(cents=150, currency="EUR"), tags=["a", "b"]))[0]
    empty = older.encode(Bill())[0]
    refund = codec_of(Protobuf(Refund, register=True), registry=settings, field="value", topic=bills)
    bad_bills = [refund.encode(Refund(number=1))[0], bill[:-1]]
    produce(brokers, bills, [bill, empty, *bad_bills])
    app = App(group, registry=registry)

    @app.pipeline(orders, value=JsonSchema(JSON), to=f"{group}.orders", dead_letter=f"{group}.orders.dlq")
    def skus(them: DataFrame) -> DataFrame:
        return them.selectExpr("id", "items.sku AS skus", "note")

    @app.pipeline(bills, value=Protobuf(NewerBill), to=f"{group}.bills", dead_letter=f"{group}.bills.dlq")
    def totals(them: DataFrame) -> DataFrame:
        return them.selectExpr("number", "total.cents", "tags", "paid")

    catch_up(app)
    assert [json.loads(each.value or b"") for each in read_records(brokers, f"{group}.orders")] == [
        {"id": 1, "skus": ["a", "b"]}
    ]
    assert [reason_of(letter) for letter in read_records(brokers, f"{group}.orders.dlq")] == [
        (bad_orders[0], "'x' is not of type 'integer' - at `$.id`"),
        (bad_orders[1], "'sku' is a required property - at `$.items[0]`"),
        (bad_orders[2], "Input data was truncated"),
        (bad_orders[3], "the value begins with the byte 0x7b, not 0x00: it was not written with a schema registry"),
    ]
    assert [json.loads(each.value or b"") for each in read_records(brokers, f"{group}.bills")] == [
        {"number": 7, "cents": 150, "tags": ["a", "b"], "paid": False},
        {"number": 0, "tags": [], "paid": False},
    ]
    assert [reason_of(letter) for letter in read_records(brokers, f"{group}.bills.dlq")] == [
        (bad_bills[0], "it is the message Refund, not Bill"),
        (bad_bills[1], "expected string, but the value ends there (0 of 1 bytes) - at `$.tags`"),
    ]


@pytest.mark.parametrize("name", ["bare Avro", "Protobuf"])
def test_any_bytes_lead_to_columns_or_a_reason_and_end_no_process(spark: SparkSession, name: str) -> None:
    """Any bytes that handlers refuse are refused here too."""
    target = targets()[name]
    if name == "Protobuf":
        settings = Registry(url="mock://bills")
        written = codec_of(Protobuf(Bill, register=True), registry=settings, field="value", topic="bills")
        sample = written.encode(Bill(number=7, total=Money(cents=150, currency="EUR"), tags=["a", "b"]))[0]
        target = replace(target, how=Protobuf(Bill, registry=settings), prefix=sample[:5], samples=[sample[5:]])
    source = Source("topic", value=target.how)
    codec = codec_of(target.how, registry=REGISTRY, field="value")
    values = [*inputs(target, 3000, random.Random(7)), *(target.prefix + each for each in HUGE)]
    schemas = Schemas(source, REGISTRY)
    schemas.fetch({value[:5] for value in values if len(value) >= 5 and value[0] == 0})
    raw = spark.createDataFrame(
        [("t", 0, number, None, value, None, None) for number, value in enumerate(values)],
        "topic string, partition int, offset long, key binary, value binary, "
        "headers array<struct<key: string, value: binary>>, timestamp timestamp",
    )
    found = decoded(raw, source, schemas).select("offset", REASON)
    refused = {row["offset"] for row in rows(found) if REASON in row}
    penstocks = set()
    for number, value in enumerate(values):
        try:
            codec.decode(value, None)
        except Undecodable:
            penstocks.add(number)
    assert len(values) > len(refused) > 0
    odd = [values[number].hex() for number in penstocks - refused]
    assert len(odd) <= 0.01 * len(values), odd


def test_bare_avro_needs_no_registry_and_stops_the_pipeline_where_it_is_none(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source, app = make_topic(), App(group)
    bare = codec_of(Avro(OLD, schema_id=None), registry=None, field="value", topic=source)
    produce(brokers, source, [bare.encode({"id": 1, "name": "Ann"})[0], None])

    @app.pipeline(source, value=Avro(OLD, schema_id=None) | None, to=f"{group}.out")
    def names(them: DataFrame) -> DataFrame:
        return them.selectExpr("coalesce(name, 'gone') AS value")

    catch_up(app)
    assert [record.value for record in read_records(brokers, f"{group}.out")] == [b"Ann", b"gone"]
    produce(brokers, source, [b"\x02"])
    with pytest.raises(HandlerError, match=rf"stopped at {source}\[0\]@2: the value does not fit its schema"):
        catch_up(app)
