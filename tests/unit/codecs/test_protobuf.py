"""Protobuf: messages are read as they were written, fields are added and removed, and errors say where and why."""

import random
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import damaged
from penstock import Protobuf, Record, Registry
from penstock.codecs import codec_of, decoder_of
from penstock.codecs.proto_file import find_indexes, name_at, read_messages
from penstock.core.failures.outcome import Undecodable
from penstock.errors import ConfigError
from protobuf_messages import Item, NewerOrder, Note, Order


def bare(message: Any) -> Any:
    return codec_of(Protobuf(message, schema_id=None), registry=None, field="value", topic="t")


def make_registry() -> Registry:
    return Registry(url=f"mock://{uuid4()}")


def why(codec: Any, data: bytes) -> str:
    with pytest.raises(Undecodable) as caught:
        codec.decode(data, None)
    return str(caught.value)


ITEMS: st.SearchStrategy[Any] = st.builds(dict, sku=st.text(), count=st.integers(-(2**31), 2**31 - 1))
ORDERS = st.builds(
    lambda **fields: Order(**fields),  # noqa: PLW0108 - made by a factory, it has no signature
    id=st.integers(-(2**31), 2**31 - 1),
    customer=st.text(),
    items=st.lists(ITEMS),
    total=st.none() | st.builds(dict, cents=st.integers(-(2**63), 2**63 - 1), currency=st.text()),
)


@given(ORDERS, st.sampled_from(["value", "headers"]), st.sampled_from(["topic", "record", "topic-record"]))
def test_every_message_comes_back_as_it_was(order: Any, schema_id: Any, subject: Any) -> None:
    registry = Registry(url="mock://protobuf-round-trips")
    format_ = Protobuf(Order, register=True, schema_id=schema_id, subject=subject)
    data, headers = codec_of(format_, registry=registry, field="value", topic="t").encode(order)
    assert codec_of(Protobuf(Order), registry=registry, field="value").decode(data, headers) == order


@pytest.mark.parametrize("message", [Note(text="x"), Order(id=7), Item(sku="x")])
def test_any_message_of_a_file_is_written_and_read(message: Any) -> None:
    registry, kind = make_registry(), type(message)
    data, _ = codec_of(Protobuf(kind, register=True), registry=registry, field="value", topic="t").encode(message)
    assert codec_of(Protobuf(kind), registry=registry, field="value").decode(data, None) == message
    other = Order if kind is not Order else Note
    said = why(codec_of(Protobuf(other), registry=registry, field="value"), data)
    assert said == f"it is the message {kind.DESCRIPTOR.full_name.removeprefix('shop.')}, not {other.DESCRIPTOR.name}"


def test_readers_take_what_older_and_newer_writers_wrote() -> None:
    registry = make_registry()
    older = codec_of(Protobuf(Order, register=True), registry=registry, field="value", topic="t")
    newer = codec_of(Protobuf(NewerOrder, register=True), registry=registry, field="value", topic="t2")
    old, _ = older.encode(Order(id=7, customer="Ann"))
    new, _ = newer.encode(NewerOrder(id=7, customer="Ann", vip=True))
    assert newer.decode(old, None) == NewerOrder(id=7, customer="Ann", vip=False)
    assert older.decode(new, None).customer == "Ann"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x08", "expected int32, got a number without an end - at `$.id`"),
        (b"\x12\x05An", "expected string, but the value ends there (2 of 5 bytes) - at `$.customer`"),
        (b"\x12\x01\xff", "expected string, got bytes that are not UTF-8 (invalid start byte) - at `$.customer`"),
        (b"\x1a\x04\x0a\x09ab", "expected string, but the value ends there (2 of 9 bytes) - at `$.items.sku`"),
        (b"\x00", "expected a field of shop.Order, got the byte 0x00 - at `$`"),
        (b"\x0f", "expected a field of shop.Order, got the byte 0x0f - at `$`"),
    ],
)
def test_bytes_that_are_not_a_message_are_an_error_that_says_where_and_why(data: bytes, reason: str) -> None:
    assert why(bare(Order), data) == reason


def test_a_message_that_is_nested_deeply_is_refused() -> None:
    data = b""
    for _ in range(2000):
        size, number = b"", len(data)
        while number > 0x7F:
            size += bytes([(number & 0x7F) | 0x80])
            number >>= 7
        data = b"\x1a" + size + bytes([number]) + data
    assert why(bare(Item), data) == "it is nested too deeply"


def test_five_megabytes_are_read_or_refused_with_a_short_reason() -> None:
    codec = bare(Order)
    good, _ = codec.encode(Order(customer="x" * 5_000_000))
    assert len(codec.decode(good, None).customer) == 5_000_000
    assert len(why(codec, good[:-1])) < 200


def test_a_required_field_that_is_missing_is_named() -> None:
    kind = descriptor_pb2.UninterpretedOption.NamePart  # it has required fields, and every installation has it
    assert why(bare(kind), b"\x0a\x01x") == "its required fields are missing: `$.is_extension`"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it ends before it says which message of its schema it is"),
        (b"\x80", "it ends before it says which message of its schema it is"),
        (b"\x02\x08", "it says to be message [4] of its schema, which has no such message"),
        (b"\x01", "it says to be -1 messages deep in its schema"),
        (b"\xfe\x7f", "it says to be 8,191 messages deep in its schema"),
    ],
)
def test_wrong_message_indexes_are_an_error(data: bytes, reason: str) -> None:
    registry = make_registry()
    writing = codec_of(Protobuf(Order, register=True), registry=registry, field="value", topic="t")
    start = writing.encode(Order())[0][:5]
    assert why(writing, start + data) == reason


def test_something_else_than_the_message_is_not_written() -> None:
    with pytest.raises(TypeError, match=r"expected a shop.Order, got dict"):
        bare(Order).encode({"id": 1})


def test_the_messages_of_a_file_are_read_from_its_text() -> None:
    text = """
    syntax = "proto3";  // message No {
    package shop; /* message Neither { */
    option java_package = "message { x";
    message Order { option (x) = { a: 1 }; enum State { NEW = 0; } message Item { oneof one { string a = 1; } } }
    service Shop { rpc Buy (Order) returns (Note) {} }
    message Note{string message = 1;}
    """
    messages = read_messages(text)
    assert messages == [("Order", [("Item", [])]), ("Note", [])]
    assert [find_indexes(messages, name) for name in ("Order", "Order.Item", "Note", "No", "Note.Item")] == [
        [0], [0, 0], [1], None, None,
    ]  # fmt: skip
    assert [name_at(messages, at) for at in ([0], [0, 0], [1], [2], [0, 1])] == [
        "Order",
        "Order.Item",
        "Note",
        None,
        None,
    ]


def test_a_class_that_is_not_a_message_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a message class"):
        Protobuf(dict)


def test_the_quick_way_to_a_message_gives_what_the_usual_one_does() -> None:
    """Records with a known schema id are read in one call; it must not read other records that way."""
    settings = make_registry()
    schema_ids: tuple[Any, ...] = ("value", "headers")
    written = [
        codec_of(
            Protobuf(type(value), register=True, schema_id=schema_id), registry=settings, field="value", topic="t"
        ).encode(value)
        for value in (Order(id=7, customer="Ann"), NewerOrder(vip=True), Note(text="x"))
        for schema_id in schema_ids
    ]
    # The schema id in the header counts, also if the value begins like one with an id.
    written.append((written[0][0], written[1][1]))
    codec = codec_of(Protobuf(Order), registry=settings, field="value")
    read, chance = decoder_of(Protobuf(Order), registry=settings), random.Random(3)
    for _ in range(3_000):
        data, headers = chance.choice(written)
        if chance.random() < 0.5:
            data = damaged(data, chance)
        assert _outcome(read, Record("t", 0, 0, None, data, headers)) == _outcome(codec.decode, data, headers)


def _outcome(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Undecodable as error:
        return str(error)
