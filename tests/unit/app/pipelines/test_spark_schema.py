"""Columns from Python types: required, nullable and refused ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from penstock import Source
from penstock.app.pipelines.spark_schema import Shape, shape_of
from penstock.errors import ConfigError


def columns(shape: Shape) -> dict[str, tuple[Any, bool]]:
    """Each column's type, and whether it may be null."""
    return {each["name"]: (each["type"], each["nullable"]) for each in shape.schema["fields"]}


class Colour(Enum):
    red = "r"
    blue = "b"


@dataclass
class Everything:
    text: str
    number: int
    real: float
    flag: bool
    raw: bytes
    moment: datetime
    day: date
    price: Decimal
    id: UUID
    anything: Any
    colour: Colour
    size: Literal["s", "m"]
    names: list[str]
    maybe_names: tuple[str | None, ...]
    counts: dict[str, int]
    maybe: str | None


def test_every_kind_of_field_has_its_column() -> None:
    assert columns(shape_of(Everything)) == {
        "text": ("string", False),
        "number": ("long", False),
        "real": ("double", False),
        "flag": ("boolean", False),
        "raw": ("binary", False),
        "moment": ("timestamp", False),
        "day": ("date", False),
        "price": ("decimal(38,18)", False),
        "id": ("string", False),
        "anything": ("variant", True),
        "colour": ("string", False),
        "size": ("string", False),
        "names": ({"type": "array", "elementType": "string", "containsNull": False}, False),
        "maybe_names": ({"type": "array", "elementType": "string", "containsNull": True}, False),
        "counts": (
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False},
            False,
        ),
        "maybe": ("string", True),
    }


class Typed(TypedDict):
    id: int
    note: NotRequired[str]


class Model(pydantic.BaseModel):
    id: int = pydantic.Field(alias="orderId")
    currency: str = "EUR"
    note: str | None = None


class Struct(msgspec.Struct, rename="camel"):
    order_id: int
    tags: list[str] = []


def test_typed_dicts_pydantic_models_and_structs_are_read_by_their_names_in_json() -> None:
    assert columns(shape_of(Typed)) == {"id": ("long", False), "note": ("string", True)}
    assert columns(shape_of(Model)) == {
        "orderId": ("long", False),
        "currency": ("string", True),
        "note": ("string", True),
    }
    assert shape_of(Model).defaults == {"currency": '"EUR"'}
    assert shape_of(Struct).names == ["orderId", "tags"]
    assert shape_of(Struct).defaults == {"tags": "[]"}


@dataclass
class Item:
    sku: str


@dataclass
class Order:
    items: list[Item]
    tags: list[str] = field(default_factory=list)


def test_types_may_hold_types_and_defaults_stand_for_what_is_missing() -> None:
    item = {"type": "struct", "fields": [{"name": "sku", "type": "string", "nullable": False, "metadata": {}}]}
    assert columns(shape_of(Order))["items"] == ({"type": "array", "elementType": item, "containsNull": False}, False)
    assert shape_of(Order).defaults == {"tags": "[]"}


@dataclass
class Endless:
    next: "Endless | None"


@dataclass
class Country:
    name: str = "DE"


@dataclass
class WithInnerDefault:
    country: Country


@dataclass
class Either:
    value: int | str


@dataclass
class Pair:
    both: tuple[int, str]


@dataclass
class ByNumber:
    names: Mapping[int, str]


@dataclass
class Strange:
    value: complex


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (Endless, "Endless.next is Endless"),
        (WithInnerDefault, "Country.name has a default"),
        (Either, "Either.value is int | str"),
        (Pair, r"Pair.both is tuple\[int, str\]"),
        (ByNumber, "ByNumber.names"),
        (Strange, "Strange.value is complex"),
        (int, "value=int is not a type"),
        (list[int], r"value=list\[int\] is not a type"),
    ],
)
def test_a_type_without_columns_is_refused_by_name(kind: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        shape_of(kind)


@dataclass
class Taken:
    _offset: int


def test_a_source_says_what_its_values_are() -> None:
    assert Source("orders").topics == ("orders",)
    assert Source(["eu", "us"]).topics == ("eu", "us")
    assert (Source("o", value=Item | None).kind, Source("o", value=Item | None).takes_tombstones) == (Item, True)
    assert not Source("o", value=Item).takes_tombstones
    assert Source("o", value="id string").ddl == "id string"
    assert Source("o", value=dict).shape is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"topics": []}, "names no topic"),
        ({"topics": "no/topic"}, "not a topic name"),
        ({"topics": "o", "key": int}, "not a type for keys"),
        ({"topics": "o", "value": "  "}, "empty schema"),
        ({"topics": "o", "value": Taken}, "'_offset', which is also"),
    ],
)
def test_a_source_that_cannot_work_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Source(**options)
