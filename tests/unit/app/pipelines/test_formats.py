"""Formats with a schema as columns: declarations, and those that are refused before anything runs."""

from typing import Any

import pytest

from penstock import App, Avro, Console, JsonSchema, Protobuf, Source, Table
from penstock.app.pipelines.json_schema_columns import json_shape
from penstock.codecs import prepare_formats
from penstock.errors import ConfigError
from protobuf_messages import Bill, Order

AVRO = {"type": "record", "name": "Customer", "fields": [{"name": "id", "type": "int"}]}
TAKEN = {"type": "record", "name": "Customer", "fields": [{"name": "_offset", "type": "int"}]}


def test_each_format_brings_what_spark_needs_to_read_it() -> None:
    app = App("shop", registry="mock://columns")
    sources = {
        "a": Source("a", value=Avro(AVRO)),
        "b": Source("b", value=Protobuf(Bill)),
        "c": Source("c", value=JsonSchema({"properties": {"id": {"type": "integer"}}})),
    }
    app.pipeline(sources=sources, to=Table("t", path="/lake"))(lambda a, b, c: (a, b, c))
    assert app.packages == ("avro", "protobuf", "delta")
    prepare_formats(app)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Avro(), r"Avro\(\) has no schema for the columns"),
        (JsonSchema(), r"JsonSchema\(\) has no schema for the columns"),
        (Avro({"type": "array", "items": "int"}), "the schema is not a record"),
        (Avro('"string"'), "the schema is not a record"),
        (Avro(TAKEN), "_offset"),
        (JsonSchema({"type": "array"}), "no properties for columns"),
        (Protobuf(Order), "shop.Order.Item contains itself"),
    ],
)
def test_a_format_without_columns_is_refused_when_it_is_declared(value: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Source("topic", value=value)


def test_a_format_or_none_takes_tombstones() -> None:
    source = Source("customers", value=Avro(AVRO) | None)
    assert source.takes_tombstones
    assert source.format == Avro(AVRO)
    assert not Source("customers", value=Avro(AVRO)).takes_tombstones
    with pytest.raises(ConfigError, match="is for pipelines"):
        App("shop").consume("customers", value=Avro(AVRO) | None)(lambda value: None)


def test_a_pipeline_s_format_without_a_registry_is_refused_before_spark_starts() -> None:
    app = App("shop")
    app.pipeline("customers", value=Avro(AVRO), to=Console())(lambda them: them)
    with pytest.raises(ConfigError, match=r"Pipeline .*: Avro needs a schema registry"):
        prepare_formats(app)


def test_a_json_schema_is_a_shape() -> None:
    shape = json_shape(
        """{
        "type": "object", "required": ["id", "tags", "any", "maybe"],
        "properties": {
            "id": {"type": "integer"}, "price": {"type": "number"}, "paid": {"type": "boolean"},
            "maybe": {"type": ["string", "null"]}, "any": {}, "either": {"type": ["string", "integer"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "by_name": {"type": "object", "additionalProperties": {"type": "number"}},
            "open": {"type": "object"}, "home": {"$ref": "#/$defs/Address"}, "far": {"$ref": "other.json"},
            "tree": {"$ref": "#/$defs/Tree"}
        },
        "$defs": {
            "Address": {"properties": {"zip": {"type": "string"}}, "required": ["zip"]},
            "Tree": {"properties": {"next": {"$ref": "#/$defs/Tree"}}}
        }}"""
    )
    found = {each["name"]: (each["type"], each["nullable"]) for each in shape.schema["fields"]}
    assert found["id"] == ("long", False)
    assert found["price"] == ("double", True)
    assert found["paid"] == ("boolean", True)
    assert found["maybe"] == ("string", True)
    assert found["any"] == ("variant", True)
    assert found["either"] == ("variant", True)
    assert found["tags"] == ({"type": "array", "elementType": "string", "containsNull": False}, False)
    assert found["by_name"][0]["valueType"] == "double"
    assert found["open"] == ("variant", True)
    assert found["home"][0]["fields"] == [{"name": "zip", "type": "string", "nullable": False, "metadata": {}}]
    assert found["far"] == ("variant", True)
    assert found["tree"][0]["fields"][0]["type"] == "variant", "what holds itself is left open there"
