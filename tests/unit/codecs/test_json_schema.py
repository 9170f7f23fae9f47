"""JSON Schema: values are read as they were written, and errors say where and why."""

from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock import JsonSchema, Reference, Registry
from penstock.codecs import codec_of
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.errors import ConfigError

ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "state": {"enum": ["new", "paid"]},
        "to": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["zip"]}]},
    },
    "required": ["id"],
}


def bare(schema: Any) -> Any:
    return codec_of(JsonSchema(schema, schema_id=None), registry=None, field="value", topic="t")


def make_registry() -> Registry:
    return Registry(url=f"mock://{uuid4()}")


def why(codec: Any, data: bytes) -> str:
    with pytest.raises(Undecodable) as caught:
        codec.decode(data, None)
    return str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON, st.sampled_from(["value", "headers"]), st.sampled_from(["topic", "record", "topic-record"]))
def test_every_value_comes_back_as_it_was(value: Any, schema_id: Any, subject: Any) -> None:
    registry = Registry(url="mock://json-round-trips")
    format_ = JsonSchema({"title": "Anything"}, register=True, schema_id=schema_id, subject=subject)
    data, headers = codec_of(format_, registry=registry, field="value", topic="t").encode(value)
    assert codec_of(JsonSchema(), registry=registry, field="value").decode(data, headers) == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "Input data was truncated"),
        (b"", "the value is empty"),
        (b"{}", "'id' is a required property - at `$`"),
        (b'{"id":"x"}', "'x' is not of type 'integer' - at `$.id`"),
        (b'{"id":1,"items":[{},{"sku":5}]}', "5 is not of type 'string' - at `$.items[1].sku`"),
        (b'{"id":1,"state":"lost"}', "'lost' is not one of ['new', 'paid'] - at `$.state`"),
        (b'{"id":1,"to":{}}', "'zip' is a required property - at `$.to`"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"id":' + b"1" * 10_000 + b"}", ""),
    ],
)
def test_a_value_that_does_not_match_is_an_error_that_says_where_and_why(data: bytes, reason: str) -> None:
    assert why(bare(ORDER), data).startswith(reason)


def test_five_megabytes_of_errors_are_reported_by_the_first() -> None:
    data = b'{"id":1,"items":[' + b"0," * 2_500_000 + b"0]}"
    assert why(bare(ORDER), data) == "0 is not of type 'object' - at `$.items[0]`"


def test_a_deep_value_of_a_schema_that_refers_to_itself_is_refused() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert why(bare(tree), b'{"next":' * 500 + b"{}" + b"}" * 500) == "it is nested too deeply"


@dataclass
class Order:
    id: int
    day: date


class Model(BaseModel):
    id: int
    day: date


@pytest.mark.parametrize("value", [Order(1, date(2030, 1, 2)), Model(id=1, day=date(2030, 1, 2))])
def test_classes_and_models_are_checked_and_written_as_json(value: Any) -> None:
    assert bare(ORDER).encode(value) == (b'{"id":1,"day":"2030-01-02"}', ())
    with pytest.raises(ValueError, match=r"is not of type 'string' - at `\$.id`"):
        bare({"properties": {"id": {"type": "string"}}}).encode(value)


def test_a_schema_refers_to_others_of_the_registry_and_to_nothing_else() -> None:
    registry = make_registry()
    address = {"type": "object", "properties": {"zip": {"type": "string"}}}
    codec_of(JsonSchema(address, register=True), registry=registry, field="value", topic="a").get_ready()
    person = {"type": "object", "properties": {"home": {"$ref": "address.json"}}}
    references = (Reference("address.json", "a-value", 1),)
    writing = codec_of(
        JsonSchema(person, references=references, register=True), registry=registry, field="value", topic="p"
    )
    data, _ = writing.encode({"home": {"zip": "1"}})
    reading = codec_of(JsonSchema(), registry=registry, field="value")
    assert reading.decode(data, None) == {"home": {"zip": "1"}}
    assert why(reading, data.replace(b'"1"', b"1")) == "1 is not of type 'string' - at `$.home.zip`"
    elsewhere = bare({"$ref": "http://127.0.0.1:1/schema.json"})
    assert "127.0.0.1:1" in why(elsewhere, b"{}")


def test_an_invalid_schema_is_refused_before_the_first_record() -> None:
    with pytest.raises(ConfigError, match=r"'objec' is not valid .* at \$.type"):
        bare({"type": "objec"})


def test_a_subject_by_record_needs_a_title() -> None:
    format_ = JsonSchema({"type": "object"}, register=True, subject="record")
    with pytest.raises(ConfigError, match="needs the title"):
        codec_of(format_, registry=make_registry(), field="value", topic="t")


def test_references_that_the_registry_does_not_have_are_waited_for_as_no_record_is_to_blame() -> None:
    registry = make_registry()
    data, _ = codec_of(JsonSchema(ORDER, register=True), registry=registry, field="value", topic="t").encode({"id": 7})
    declared = JsonSchema({"$ref": "address.json"}, references=(Reference("nothing", "nobody", 1),))
    with pytest.raises(DependencyUnavailable, match="the schema of JsonSchema cannot be used with its references"):
        codec_of(declared, registry=registry, field="value").decode(data, None)
