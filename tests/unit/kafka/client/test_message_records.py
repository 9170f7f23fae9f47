"""Records that read their message on access."""

import pickle

import pytest
from confluent_kafka import Message

from penstock import Record
from penstock.kafka.client.message_records import to_record

MESSAGE = Message(
    topic="orders",
    partition=2,
    offset=17,
    key=b"k",
    value=b"v",
    headers=[("h", b"1")],
    timestamp=(1, 1_700_000_000_000),
)
PLAIN = Record("orders", 2, 17, b"k", b"v", (("h", b"1"),), 1_700_000_000_000, 3)


def test_every_field_is_read_from_the_message() -> None:
    record = to_record(MESSAGE, 3)
    assert record == PLAIN
    assert (str(record), repr(record), record.timestamp) == (str(PLAIN), repr(PLAIN), PLAIN.timestamp)


def test_a_field_that_was_read_is_kept() -> None:
    record = to_record(MESSAGE, 1)
    assert record.headers is record.headers


def test_a_message_record_is_pickled_as_a_plain_record() -> None:
    travelled = pickle.loads(pickle.dumps(to_record(MESSAGE, 3)))
    assert travelled == PLAIN
    assert type(travelled) is Record


def test_a_missing_attribute_of_a_record_is_named() -> None:
    with pytest.raises(AttributeError, match="a record has no 'payload'"):
        _ = to_record(MESSAGE, 1).payload  # type: ignore[attr-defined]
