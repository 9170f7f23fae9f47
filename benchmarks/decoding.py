"""The decoders of attempts against their bare libraries in a loop: python benchmarks/decoding.py.

Each round takes the same values through both, one after the other; medians over the rounds count, in time of the
processor. Penstock also finds the schema, handles tombstones and headers, and explains bad values.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from statistics import median
from typing import Annotated, Any

import fastavro
import jsonschema
import msgspec
import typer
from confluent_kafka.schema_registry import topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import type_pb2
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from penstock import App, Avro, JsonSchema, Protobuf, Record, Registry
from penstock.app import Arguments
from penstock.codecs import RECORDS, codec_of
from penstock.codecs.registry_client import registry_client_of

REGISTRY = Registry(url="mock://benchmark")


@dataclass
class Item:
    sku: str
    count: int
    price: float


@dataclass
class Order:
    id: int
    customer: str
    items: list[Item]


class ItemModel(BaseModel):
    sku: str
    count: int
    price: float


class OrderModel(BaseModel):
    id: int
    customer: str
    items: list[ItemModel]


VALUE: dict[str, Any] = {
    "id": 123_456,
    "customer": "Ann-Kathrin Example",
    "items": [{"sku": f"sku-{number}", "count": number, "price": 9.99} for number in range(5)],
}
_ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "count", "type": "int"},
        {"name": "price", "type": "double"},
    ],
}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "items", "type": {"type": "array", "items": _ITEM}},
    ],
}
NEWER = {**AVRO, "fields": [*AVRO["fields"], {"name": "country", "type": "string", "default": "DE"}]}
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}, "price": {"type": "number"}},
            },
        },
    },
    "required": ["id", "customer"],
}
# A message that every Protobuf library brings along, about as large.
MESSAGE = type_pb2.Type(
    name="Order", fields=[{"name": f"field-{number}", "number": number, "type_url": "Item"} for number in range(5)]
)


@dataclass
class Case:
    """A format: how a handler declares it, its bytes, and the call of the bare library."""

    name: str
    how: Any
    hint: Any
    data: bytes
    bare: Callable[[bytes], Any]


def _written(format_: Any, value: Any) -> bytes:
    return codec_of(format_, registry=REGISTRY, field="value", topic="orders").encode(value)[0]


def cases() -> list[Case]:
    text = json.dumps(VALUE).encode()
    writer, reader = fastavro.parse_schema(AVRO), fastavro.parse_schema(NEWER)
    validator = jsonschema.Draft202012Validator(JSON_SCHEMA)
    decode_order, read = msgspec.json.Decoder(Order).decode, fastavro.schemaless_reader

    def bare_json_schema(data: bytes) -> Any:
        value = json.loads(data[5:])
        validator.validate(value)
        return value

    avro = _written(Avro(AVRO, register=True), VALUE)
    return [
        Case("dict", None, dict, text, msgspec.json.decode),
        Case("dataclass", None, Order, text, decode_order),
        Case("pydantic", None, OrderModel, text, OrderModel.model_validate_json),
        Case("Avro", Avro(), dict, avro, lambda data: read(BytesIO(data[5:]), writer, None)),
        Case("Avro, evolved", Avro(NEWER), dict, avro, lambda data: read(BytesIO(data[5:]), writer, reader)),
        Case(
            "Avro, dataclass",
            Avro(),
            Order,
            avro,
            lambda data: msgspec.convert(read(BytesIO(data[5:]), writer, None), Order),
        ),
        Case(
            "JSON Schema", JsonSchema(), dict, _written(JsonSchema(JSON_SCHEMA, register=True), VALUE), bare_json_schema
        ),
        Case(
            "Protobuf",
            Protobuf(type_pb2.Type),
            None,
            _written(Protobuf(type_pb2.Type, register=True), MESSAGE),
            lambda data: type_pb2.Type.FromString(data[6:]),
        ),
    ]


def penstocks(case: Case, count: int) -> float:
    """The decoder as an attempt calls it, on records as Spark's tasks and the testing kit have them."""
    app = App("benchmark", registry=REGISTRY)

    def handle(value: Any) -> None: ...

    if case.hint is not None:
        handle.__annotations__["value"] = case.hint
    app.consume("orders", value=case.how)(handle)
    arguments = Arguments(app.handlers[0], RECORDS)
    source_of, decode = arguments.source_of, arguments.decode
    if decode is None:
        raise RuntimeError(case.name)
    records = _records(case, count)
    decode(records[0] if source_of is None else source_of(records[0]))
    began = time.process_time()
    for record in records:
        decode(record) if source_of is None else decode(source_of(record))
    return time.process_time() - began


def by_hand(case: Case, count: int) -> float:
    records, bare = _records(case, count), case.bare
    began = time.process_time()
    for record in records:
        bare(record.value or b"")
    return time.process_time() - began


def by_confluent(case: Case, count: int) -> float | None:
    """Confluent's own deserializers, where a record is in their wire format."""
    client, context = registry_client_of(REGISTRY)._client, SerializationContext("orders", MessageField.VALUE, [])
    conf = {"subject.name.strategy": topic_subject_name_strategy}
    read: Any
    match case.how:
        case Avro(schema=schema):
            read = AvroDeserializer(client, schema, conf=conf)
        case JsonSchema():
            read = JSONDeserializer(None, schema_registry_client=client, conf=conf)
        case Protobuf(message=message):
            read = ProtobufDeserializer(message, conf)
        case _:
            return None
    data = case.data
    read(data, context)
    began = time.process_time()
    for _ in range(count):
        read(data, context)
    return time.process_time() - began


def _records(case: Case, count: int) -> list[Record]:
    return [Record("orders", 0, offset, None, case.data) for offset in range(count)]


def main(
    *,
    count: Annotated[int, typer.Option(help="Records in each round.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="Rounds, in turns; medians count.")] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    results: dict[str, dict[str, Any]] = {}
    for case in cases():
        # In turns, so that what else the machine does meets all of them alike.
        found = [(penstocks(case, count), by_hand(case, count), by_confluent(case, count)) for _ in range(rounds)]
        theirs = [each[2] for each in found if each[2] is not None]
        results[case.name] = {
            "records_per_s": round(count / median(each[0] for each in found)),
            "by_hand": round(count / median(each[1] for each in found)),
            "ratio": round(median(each[1] / each[0] for each in found), 2),
            "confluent": round(count / median(theirs)) if theirs else None,
        }
    if as_json:
        print(json.dumps(results))
        return
    table = Table("decoder", "records/s", "bare library", "ratio", "Confluent's deserializer")
    for name, each in results.items():
        theirs = "" if each["confluent"] is None else f"{each['confluent']:,}"
        table.add_row(name, f"{each['records_per_s']:,}", f"{each['by_hand']:,}", f"{each['ratio']:.2f}", theirs)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
