"""The type hint is the decoder."""

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock.core.failures.outcome import Undecodable
from penstock.errors import ConfigError
from penstock.serde import decoder_for, encode


@dataclass
class Order:
    id: int
    items: list[str]


class Typed(TypedDict):
    id: int


class Named(NamedTuple):
    id: int


class Model(BaseModel):
    id: int
    tags: list[str] = []


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (bytes, b"\xff", b"\xff"),
        (str, "é".encode(), "é"),
        (int, b"5", 5),
        (dict, b'{"a":1}', {"a": 1}),
        (dict[str, int], b'{"a":1}', {"a": 1}),
        (Any, b"[1]", [1]),
        (Order, b'{"id":1,"items":["x"]}', Order(1, ["x"])),
        (Typed, b'{"id":1}', {"id": 1}),
        (Named, b"[1]", Named(1)),
        (Model, b'{"id":1}', Model(id=1)),
        (Model | None, b'{"id":1}', Model(id=1)),
        (Order | None, b'{"id":1,"items":[]}', Order(1, [])),
        (bytes | None, b"x", b"x"),
        (str | None, b"x", "x"),
        (Order | int, b"7", 7),
    ],
)
def test_a_value_is_decoded_as_its_hint_says(hint: Any, value: bytes, expected: Any) -> None:
    assert decoder_for(hint)(value) == expected


@pytest.mark.parametrize("hint", [bytes | None, str | None, Order | None, Model | None])
def test_a_tombstone_is_none_where_the_hint_allows_it(hint: Any) -> None:
    assert decoder_for(hint)(None) is None


@pytest.mark.parametrize("hint", [bytes, str, dict, Order, Model])
def test_a_tombstone_is_refused_where_the_hint_does_not(hint: Any) -> None:
    with pytest.raises(Undecodable, match="tombstone"):
        decoder_for(hint)(None)


@pytest.mark.parametrize(
    ("hint", "value", "reason"),
    [
        (str, b"ab\xff", "not UTF-8 text: invalid start byte at byte 2"),
        (dict, b"{", "Input data was truncated"),
        (dict, b"", r"the value is empty \(0 bytes, which is not a tombstone\), and JSON has at least one character"),
        (Order | None, b"", "the value is empty"),
        (Model, b"", "the value is empty"),
        (dict, b"[1]", "Expected `object`, got `array`"),
        (Order, b'{"id":"x","items":[]}', r"Expected `int`, got `str` - at `\$.id`"),
        (Order, b'{"id":1}', "missing required field `items`"),
        (Order, b'{"id":1,"items":["a",2]}', r"at `\$.items\[1\]`"),
        (
            Model,
            b'{"id":"x","tags":[1]}',
            "id: Input should be a valid integer.*; tags.0: Input should be a valid string",
        ),
        (Model, b"{", "Invalid JSON"),
        (dict, b"[" * 100_000, "Expected `object`, got `array`"),
        (Any, b"[" * 100_000, "(?i)recursion"),
    ],
)
def test_a_value_that_cannot_be_decoded_is_an_error_that_says_where_and_why(
    hint: Any, value: bytes, reason: str
) -> None:
    with pytest.raises(Undecodable, match=reason):
        decoder_for(hint)(value)


@pytest.mark.parametrize("hint", [str, int, dict, Order, Typed, Model, Any])
@pytest.mark.parametrize(
    ("start", "repeated", "end"), [(b"", b"\xff", b""), (b"", b"[", b""), (b'{"id":[', b"0,", b"0]}")]
)
def test_five_megabytes_are_read_or_refused_with_a_short_reason(
    hint: Any, start: bytes, repeated: bytes, end: bytes
) -> None:
    data = start + repeated * (5_000_000 // len(repeated)) + end
    reason = "read"
    try:
        decoder_for(hint)(data)
    except Undecodable as error:
        reason = str(error)
    assert 0 < len(reason) < 200


def test_a_model_lists_a_few_of_its_errors_and_counts_the_others() -> None:
    faults = [f'"t{n}"' if n % 2 else "5" for n in range(100)]
    with pytest.raises(Undecodable) as caught:
        decoder_for(Model)(f'{{"id":1,"tags":[{",".join(faults)}]}}'.encode())
    assert str(caught.value).startswith("tags.0: Input should be a valid string; tags.2: ")
    assert str(caught.value).endswith("; and 45 more")
    with pytest.raises(Undecodable, match=r"it is not a Model: 2,000 of its parts are wrong"):
        decoder_for(Model)(b'{"id":1,"tags":[' + b",".join([b"5"] * 2000) + b"]}")


@given(st.binary(max_size=200))
def test_any_bytes_lead_to_a_value_or_a_reason(value: bytes) -> None:
    for hint in (str, int, dict, Order, Typed, Model):
        with suppress(Undecodable):
            decoder_for(hint)(value)


@dataclass
class Holder:
    lock: list[threading.Event]
    parent: "Holder | None" = None


@pytest.mark.parametrize(
    "hint", [threading.Event, threading.Lock, Holder, dict[str, Holder], Order | Named | list[int]]
)
def test_a_hint_that_has_no_decoder_is_refused_when_it_is_declared(hint: Any) -> None:
    with pytest.raises(ConfigError, match="No decoder fits"):
        decoder_for(hint)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_comes_back_as_it_was(value: Any) -> None:
    encoded = encode([value])
    assert decoder_for(Any)(encoded) == [value]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\xff", b"\xff"),
        ("é", "é".encode()),
        (5, b"5"),
        ({"a": 1}, b'{"a":1}'),
        (Order(1, ["x"]), b'{"id":1,"items":["x"]}'),
        (Model(id=1), b'{"id":1,"tags":[]}'),
    ],
)
def test_values_are_encoded_by_their_type(value: Any, expected: bytes) -> None:
    assert encode(value) == expected


def test_a_value_that_cannot_be_encoded_is_an_error() -> None:
    with pytest.raises(TypeError):
        encode(object())
