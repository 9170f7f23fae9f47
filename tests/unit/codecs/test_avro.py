"""Avro: values are read as they were written, schemas evolve, and errors say where and why."""

from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from penstock import Avro, Reference, Registry
from penstock.codecs import codec_of
from penstock.codecs.avro_schemas import is_recursive
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.errors import ConfigError


def record(*fields: dict[str, Any], name: str = "Customer", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


CUSTOMER = record(field("id", "int"), field("name", "string"))


def bare(schema: Any) -> Any:
    return codec_of(Avro(schema, schema_id=None), registry=None, field="value", topic="t")


def written(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return stream.getvalue()


def make_registry() -> Registry:
    return Registry(url=f"mock://{uuid4()}")


def why(read: Any, data: bytes) -> str:
    with pytest.raises(Undecodable) as caught:
        read.decode(data, None)
    return str(caught.value)


EVERYTHING = record(
    field("flag", "boolean"),
    field("small", "int"),
    field("large", "long"),
    field("single", "float"),
    field("real", "double"),
    field("raw", "bytes"),
    field("text", ["null", "string"]),
    field("state", {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}),
    field("digest", {"type": "fixed", "name": "Digest", "size": 4}),
    field("tags", {"type": "array", "items": "string"}),
    field("counts", {"type": "map", "values": "long"}),
    field("at", {"type": "long", "logicalType": "timestamp-micros"}),
    field("price", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}),
    field("uuid", {"type": "string", "logicalType": "uuid"}),
)
VALUES = st.fixed_dictionaries(
    {
        "flag": st.booleans(),
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.integers(-(2**63), 2**63 - 1),
        "single": st.floats(width=32, allow_nan=False),
        "real": st.floats(allow_nan=False),
        "raw": st.binary(),
        "text": st.none() | st.text(),
        "state": st.sampled_from(["NEW", "PAID"]),
        "digest": st.binary(min_size=4, max_size=4),
        "tags": st.lists(st.text()),
        "counts": st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)),
        "at": st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        "price": st.decimals(-1_000_000, 1_000_000, places=2),
        "uuid": st.uuids(),
    }
)


@given(VALUES)
def test_every_value_comes_back_as_it_was(value: dict[str, Any]) -> None:
    codec = bare(EVERYTHING)
    data, headers = codec.encode(value)
    assert headers == ()
    assert codec.decode(data, None) == value


@given(VALUES, st.sampled_from(["value", "headers"]), st.sampled_from(["topic", "record", "topic-record"]))
def test_every_value_comes_back_through_a_registry(value: dict[str, Any], schema_id: Any, subject: Any) -> None:
    registry = Registry(url="mock://round-trips")
    writing = codec_of(
        Avro(EVERYTHING, register=True, schema_id=schema_id, subject=subject), registry=registry, field="key", topic="t"
    )
    data, headers = writing.encode(value)
    assert [name for name, _ in headers] == (["__key_schema_id"] if schema_id == "headers" else [])
    assert codec_of(Avro(), registry=registry, field="key").decode(data, headers) == value


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"),
    [
        (
            CUSTOMER,
            {"id": 7, "name": "Ann"},
            record(field("id", "long"), field("name", "string")),
            {"id": 7, "name": "Ann"},
        ),
        (CUSTOMER, {"id": 7, "name": "Ann"}, record(field("id", "double")), {"id": 7.0}),
        (
            CUSTOMER,
            {"id": 7, "name": "Ann"},
            record(field("id", "int"), field("vip", "boolean", default=False)),
            {"id": 7, "vip": False},
        ),
        (
            CUSTOMER,
            {"id": 7, "name": "Ann"},
            record(field("id", "int"), field("full_name", "string", aliases=["name"])),
            {"id": 7, "full_name": "Ann"},
        ),
        (CUSTOMER, {"id": 7, "name": "Ann"}, record(field("id", ["null", "int"])), {"id": 7}),
    ],
)
def test_a_reader_s_schema_takes_what_older_and_newer_ones_wrote(
    writer: Any, value: Any, reader: Any, expected: Any
) -> None:
    registry = make_registry()
    data, _ = codec_of(Avro(writer, register=True), registry=registry, field="value", topic="t").encode(value)
    assert codec_of(Avro(reader), registry=registry, field="value").decode(data, None) == expected


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (record(field("id", "string")), "expected string, was written as int - at `$.id`"),
        (record(field("zip", "string")), "expected string, was not written, and there is no default - at `$.zip`"),
        (
            record(field("id", "int"), name="Order"),
            "expected record shop.Order, was written as record shop.Customer - at `$`",
        ),
        (record(field("name", ["null", "int"])), "expected null or int, was written as string - at `$.name`"),
    ],
)
def test_a_readers_schema_that_does_not_fit_is_reported_with_field_and_type(reader: Any, reason: str) -> None:
    registry = make_registry()
    writing = codec_of(Avro(CUSTOMER, register=True), registry=registry, field="value", topic="t")
    data, _ = writing.encode({"id": 7, "name": "Ann"})
    said = why(codec_of(Avro(reader), registry=registry, field="value"), data)
    assert said == f"it was written with a schema that cannot be read as this one: {reason}"


NESTED = record(
    field("id", "int"),
    field("state", {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}),
    field("items", {"type": "array", "items": record(field("sku", "string"), name="Item")}),
    field("by", {"type": "map", "values": {"type": "int", "logicalType": "date"}}),
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected int, but the value ends there - at `$.id`"),
        (b"\xff" * 11, "expected int, got a number without an end - at `$.id`"),
        (b"\x02\x08", "expected enum shop.State, of which there is no number 4 - at `$.state`"),
        (b"\x02\x00\x02\x06ab", "expected string, but the value ends there (2 of 3 bytes) - at `$.items[0].sku`"),
        (
            b"\x02\x00\x04\x02a\x02\xff\x00\x00",
            "expected string, got bytes that are not UTF-8 (invalid start byte) - at `$.items[1].sku`",
        ),
        (b"\x02\x00\x02\x03", "expected string, got a length of -2 - at `$.items[0].sku`"),
        (b"\x02\x00\x00\x02\x02k\xfe\xff\xff\xff\x0f\x00", "expected date, got another value"),
        (b"\x02\x00\x00\x00!", "1 of its 5 bytes are left over: it was written with another schema"),
    ],
)
def test_bytes_that_are_not_avro_are_an_error_that_says_where_and_why(data: bytes, reason: str) -> None:
    assert why(bare(NESTED), data).startswith(reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": "x", "name": "Ann"}, "shop.Customer.id is <x> of type <class 'str'> expected int"),
        ({"id": 7}, "Field(shop.Customer.name) is None expected string"),
        (7, "expected"),
    ],
)
def test_a_value_that_cannot_be_written_is_an_error_that_says_where_and_why(value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        bare(CUSTOMER).encode(value)
    assert reason in str(caught.value)


CHAIN = record(field("next", ["null", "shop.Chain"]), name="Chain")


@pytest.mark.parametrize("depth", [100_000, 3_000_000])
def test_a_value_that_is_nested_deeply_is_refused_and_ends_no_process(depth: int) -> None:
    # The reader in C has no limit for nesting: this once ended the whole process.
    assert why(bare(CHAIN), b"\x02" * depth) == "it is nested too deeply"
    assert bare(CHAIN).decode(b"\x02" * 900 + b"\x00", None) is not None


def test_a_number_without_an_end_costs_no_more_than_its_bytes() -> None:
    assert "without an end" in why(
        bare(record(field("id", "long"), field("next", ["null", "shop.Customer"]))), b"\xff" * 5_000_000
    )


def test_schemas_that_refer_to_themselves_are_distinguished_from_those_that_repeat_a_name() -> None:
    item = record(field("sku", "string"), name="Item")
    assert not is_recursive(parse_schema(record(field("a", item), field("b", "shop.Item"))))
    assert is_recursive(parse_schema(CHAIN))
    assert is_recursive(
        parse_schema(record(field("inner", record(field("outer", ["null", "shop.Customer"]), name="Inner"))))
    )


@pytest.mark.parametrize("items", ["null", {"type": "record", "name": "Nothing", "fields": []}])
def test_an_array_of_nothing_is_refused_as_a_few_bytes_could_claim_any_number(items: Any) -> None:
    many = b"\xfe\xff\xff\xff\xff\x7f"
    assert "takes no bytes" in why(bare({"type": "array", "items": items}), many)


@pytest.mark.parametrize("data", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
@pytest.mark.parametrize("schema", [{"type": "array", "items": "long"}, {"type": "map", "values": "int"}, '"string"'])
def test_a_length_that_no_value_has_takes_no_memory(schema: Any, data: bytes) -> None:
    assert "expected" in why(bare(schema), data)


def test_five_megabytes_are_read_or_refused_with_a_short_reason() -> None:
    codec = bare({"type": "array", "items": "string"})
    good, _ = codec.encode(["x" * 1000] * 5_000)
    assert len(codec.decode(good, None)) == 5_000
    assert len(why(codec, good[:-1])) < 200


def test_bytes_alone_are_as_confluent_s_serializers_write_them() -> None:
    assert bare('"bytes"').encode(b"abc") == (b"abc", ())
    assert bare('"bytes"').decode(b"abc", None) == b"abc"


def test_types_of_python_are_kept() -> None:
    value = {"at": datetime(2030, 1, 1, tzinfo=UTC), "price": Decimal("1.50"), "uuid": UUID(int=5)}
    some = [each for each in EVERYTHING["fields"] if each["name"] in value]
    codec = bare(record(*some))
    assert codec.decode(codec.encode(value)[0], None) == value


def test_a_schema_refers_to_others_of_the_registry() -> None:
    registry = make_registry()
    codec_of(
        Avro(record(field("zip", "string"), name="Address"), register=True), registry=registry, field="value", topic="a"
    ).get_ready()
    person = record(field("home", "shop.Address"), field("work", ["null", "shop.Address"]), name="Person")
    references = (Reference("shop.Address", "a-value", 1),)
    writing = codec_of(Avro(person, references=references, register=True), registry=registry, field="value", topic="p")
    value = {"home": {"zip": "1"}, "work": {"zip": "2"}}
    data, _ = writing.encode(value)
    assert codec_of(Avro(), registry=registry, field="value").decode(data, None) == value
    reading = codec_of(Avro(person, references=references), registry=registry, field="value")
    assert reading.decode(data, None) == value


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "the schema is not JSON"),
        ('{"type": "strin"}', "does not know the type {'type': 'strin'}"),
        (record(field("home", "shop.Address")), "shop.Address"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_before_a_record_flows(schema: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bare(schema)
    assert problem in caught.value.problem


def test_writing_needs_a_schema() -> None:
    with pytest.raises(ConfigError, match="no schema to write with"):
        codec_of(Avro(), registry=make_registry(), field="value", topic="t")


def test_references_that_the_registry_does_not_have_are_waited_for_as_no_record_is_to_blame() -> None:
    registry = make_registry()
    data, _ = codec_of(Avro(CUSTOMER, register=True), registry=registry, field="value", topic="t").encode(
        {"id": 7, "name": "Ann"}
    )
    declared = Avro(
        record(field("home", "shop.Address"), name="Person"), references=(Reference("nothing", "nobody", 1),)
    )
    with pytest.raises(DependencyUnavailable, match="the schema of Avro cannot be used with its references"):
        codec_of(declared, registry=registry, field="value").decode(data, None)
