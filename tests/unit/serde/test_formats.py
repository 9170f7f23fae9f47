"""Formats are declared as plain data: they can be compared, pickled and printed, and mistakes are errors at once."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from penstock import Avro, JsonSchema, Protobuf, Reference, Registry
from penstock.errors import ConfigError
from protobuf_messages import Order

SCHEMA = {"type": "record", "name": "Customer", "fields": []}


@pytest.mark.parametrize("kind", [Avro, JsonSchema])
def test_a_schema_is_given_as_text_a_dict_or_a_file(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    assert kind(SCHEMA) == kind(json.dumps(SCHEMA)) == kind(file)
    assert hash(kind(SCHEMA)) == hash(kind(file))


def test_formats_travel_and_print_no_secret() -> None:
    format_ = Avro(
        SCHEMA,
        registry={"url": "https://ann:hush-1@r", "basic.auth.user.info": "ann:hush-2"},
        references=(Reference("a", "b", 1),),
    )
    assert pickle.loads(pickle.dumps(format_)) == format_
    assert "hush" not in repr(format_)
    assert isinstance(format_.registry, Registry)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Avro("{"), "Avro: the schema is not JSON"),
        (lambda: Avro({1: {2}}), "Avro: the schema is not JSON"),  # type: ignore[dict-item]
        (lambda: JsonSchema(Path("/nowhere.json")), "cannot be read"),
        (lambda: Avro(SCHEMA, subject="subject"), "subject='subject' does not exist"),  # type: ignore[arg-type]
        (lambda: Avro(SCHEMA, schema_id="prefix"), "schema_id='prefix' does not exist"),  # type: ignore[arg-type]
        (lambda: Avro(schema_id=None), "needs a schema"),
        (lambda: Avro(SCHEMA, schema_id=None, registry="http://r"), "a registry has no use"),
        (lambda: Protobuf(Order, schema_id=None, register=True), "a registry has no use"),
        (lambda: Avro(SCHEMA, registry="r:80"), "has the URL 'r:80'"),
        (Protobuf, "is not a message class"),
        (lambda: Protobuf(Order()), "is not a message class"),
    ],
)
def test_a_mistake_in_a_format_shows_when_it_is_declared(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert problem in caught.value.problem
