"""Kafka's log of commits, ``__consumer_offsets``."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.commit_log import CommitKey, CommitValue, partition_of, read_key, read_value


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


@pytest.mark.parametrize(
    ("group", "partition"),
    # In Java, the hash of "polygenelubricants" is the lowest integer, whose absolute value is no integer.
    [("", 0), ("a", 47), ("ab", 5), ("polygenelubricants", 0)],
)
def test_a_group_is_where_javas_hash_puts_it(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def test_keys_and_values_of_every_version() -> None:
    key = struct.pack(">h", 1) + _text("g") + _text("orders") + struct.pack(">i", 7)
    assert read_key(key) == CommitKey("g", ("orders", 7))
    old = struct.pack(">hq", 1, 42) + _text("map") + struct.pack(">qq", 1, 2)
    assert read_value(old) == CommitValue(42, "map")
    with_epoch = struct.pack(">hqi", 3, 42, -1) + _text("map\0") + struct.pack(">q", 1)
    assert read_value(with_epoch) == CommitValue(42, "map")
    compact = struct.pack(">hqi", 4, 42, -1) + b"\x04map" + struct.pack(">q", 1) + b"\x00"
    assert read_value(compact) == CommitValue(42, "map")
    long = struct.pack(">hqi", 4, 42, -1) + b"\xad\x02" + b"x" * 300 + struct.pack(">q", 1) + b"\x00"
    assert read_value(long) == CommitValue(42, "x" * 300)


def test_records_about_members_are_passed_over() -> None:
    assert read_key(struct.pack(">h", 2) + _text("g")) is None


@given(st.binary(max_size=60))
def test_any_bytes_in_the_log_are_no_error(data: bytes) -> None:
    read_key(data)
    read_value(data)
