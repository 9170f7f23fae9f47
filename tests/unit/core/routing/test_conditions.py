"""Conditions on headers and keys."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import key_like
from penstock.core.routing.conditions import HeaderCondition, KeyLike, last_values
from penstock.errors import ConfigError


def test_a_header_must_have_one_of_the_values() -> None:
    condition = HeaderCondition("type", frozenset([b"created", b"updated"]))
    assert condition.holds({"type": b"updated"})
    assert not condition.holds({"type": b"cancelled"})
    assert not condition.holds({"type": None})
    assert not condition.holds({"kind": b"created"})


def test_a_header_must_be_there_or_be_missing() -> None:
    assert HeaderCondition("trace").holds({"trace": None})
    assert not HeaderCondition("trace").holds({})
    assert HeaderCondition("trace", present=False).holds({"type": b"x"})
    assert not HeaderCondition("trace", present=False).holds({"trace": b""})


def test_of_a_header_that_occurs_twice_the_last_value_counts() -> None:
    assert last_values([("type", b"created"), ("n", b"1"), ("type", b"updated")]) == {"type": b"updated", "n": b"1"}
    assert last_values(None) == {}


@pytest.mark.parametrize(
    ("pattern", "key", "holds"),
    [
        ("eu-*", b"eu-1", True),
        ("eu-*", b"eu-", True),
        ("eu-*", b"us-1", False),
        ("eu-*", b"an eu-1", False),
        ("eu-1", b"eu-12", False),
        ("*-7", b"eu-7", True),
        ("a*c*e", b"abcde", True),
        ("a.c", b"abc", False),
        ("*", b"", True),
        ("*", b"two\nlines", True),
        ("*", None, False),
        (b"\xff*", b"\xff\x00", True),
    ],
)
def test_a_star_stands_for_any_characters(pattern: str | bytes, key: bytes | None, holds: bool) -> None:  # noqa: FBT001
    assert key_like(pattern).holds(key) is holds


def test_one_of_several_patterns_is_enough_and_they_are_not_mixed() -> None:
    condition = key_like("eu-*", "us")
    assert [key for key in (b"eu-1", b"us", b"us-1", b"eu") if condition.holds(key)] == [b"eu-1", b"us"]


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=4), st.binary(max_size=12))
def test_a_pattern_matches_what_a_search_for_its_parts_in_order_finds(parts: list[bytes], key: bytes) -> None:
    parts = [part.replace(b"*", b"+") for part in parts]
    assert key_like(b"*".join(parts)).holds(key) is _matches(parts, key)


def _matches(parts: list[bytes], key: bytes) -> bool:
    """The same by hand: the first part begins the key, the last ends it, the others follow each other."""
    if len(parts) == 1:
        return key == parts[0]
    first, *middle, last = parts
    if not key.startswith(first) or not key.endswith(last) or len(first) + len(last) > len(key):
        return False
    rest = key[len(first) : len(key) - len(last)]
    for part in middle:
        at = rest.find(part)
        if at < 0:
            return False
        rest = rest[at + len(part) :]
    return True


@pytest.mark.parametrize("patterns", [(), (1,), (None,), (["eu-*"],)])
def test_what_is_no_pattern_is_an_error(patterns: tuple[object, ...]) -> None:
    with pytest.raises(ConfigError, match="names no pattern of keys"):
        key_like(*patterns)  # type: ignore[arg-type]


def test_conditions_travel_to_other_processes() -> None:
    used = key_like("eu-*")
    assert used.holds(b"eu-1")
    copy = pickle.loads(pickle.dumps(used))
    assert isinstance(copy, KeyLike)
    assert copy == used
    assert copy.holds(b"eu-2")
