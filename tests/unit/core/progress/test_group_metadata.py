"""The subscriptions of members, byte by byte."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.group_metadata import (
    MemberKey,
    PatternKey,
    Subscription,
    read_key,
    read_matches,
    read_member,
    read_subscription,
)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def compact(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value.encode()) + 1]) + value.encode()


TOPICS = struct.pack(">i", 2) + text("orders") + text("returns")
USER_DATA = struct.pack(">i", 3) + b"xyz"
OWNED = struct.pack(">i", 1) + text("orders") + struct.pack(">iii", 2, 0, 5)
WHOLE = {
    0: TOPICS + struct.pack(">i", -1),
    1: TOPICS + USER_DATA + OWNED,
    2: TOPICS + USER_DATA + OWNED + struct.pack(">i", 7),
    3: TOPICS + USER_DATA + OWNED + struct.pack(">i", 7) + text("zone-a"),
    4: TOPICS + USER_DATA + OWNED + struct.pack(">i", 7) + text("zone-a") + b"what is to come",
}
MEMBER = b"\0\0" + b"".join(
    [compact(None), compact("zone-b"), compact("client"), compact("/127.0.0.1"), b"\x02", compact("orders")]
)


@pytest.mark.parametrize("version", WHOLE)
def test_every_version_of_the_classic_protocol_is_read(version: int) -> None:
    found = read_subscription(struct.pack(">h", version) + WHOLE[version])
    assert found == Subscription(("orders", "returns"), "zone-a" if version >= 3 else None)


def test_a_member_of_the_new_protocol_is_read_from_the_log() -> None:
    assert read_member(MEMBER + compact(None) + b"rest") == Subscription(("orders",), "zone-b")
    assert read_member(MEMBER + compact("^ord.*")) == Subscription(("orders",), "zone-b", "^ord.*")
    assert read_matches(b"\0\0\x03" + compact("a") + compact("b") + b"\0" * 16) == ("a", "b")


def test_keys_of_the_log_say_whom_a_record_is_about() -> None:
    names = text("group") + text("who")
    assert read_key(struct.pack(">h", 5) + names) == MemberKey("group", "who")
    assert read_key(struct.pack(">h", 16) + names) == PatternKey("group", "who")
    assert read_key(struct.pack(">h", 1) + names) is None


def test_unknown_versions_are_read_as_none() -> None:
    assert read_member(b"\0\x01" + MEMBER[2:]) is None
    assert read_matches(b"\0\x01\x01") is None


@given(st.binary(max_size=60))
def test_any_bytes_of_other_clients_are_no_error(data: bytes) -> None:
    read_key(data)
    read_member(data)
    read_matches(data)
    read_subscription(data)


@given(st.integers(0, len(WHOLE[3])))
def test_truncated_bytes_are_read_as_none(length: int) -> None:
    whole = struct.pack(">h", 3) + WHOLE[3]
    found = read_subscription(whole[:length])
    assert found is None
