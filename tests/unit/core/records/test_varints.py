"""Variable-length integers, in the form that Kafka, Avro and Protobuf share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.records.varints import LONGEST, VarintError, from_zigzag, read_varint, write_varint, zigzag


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_is_read_as_it_was_written(number: int, before: bytes, after: bytes) -> None:
    encoded = write_varint(number)
    assert read_varint(before + encoded + after, len(before)) == (number, len(before) + len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_come_back(number: int) -> None:
    assert from_zigzag(zigzag(number)) == number


@pytest.mark.parametrize(("number", "expected"), [(0, 0), (-1, 1), (1, 2), (-2, 3), (2, 4)])
def test_small_numbers_stay_small(number: int, expected: int) -> None:
    assert zigzag(number) == expected


def test_the_examples_of_protobuf() -> None:
    assert write_varint(150) == b"\x96\x01"
    assert read_varint(b"\x96\x01", 0) == (150, 2)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * LONGEST + b"\x01"])
def test_a_number_without_an_end_is_an_error(data: bytes) -> None:
    with pytest.raises(VarintError, match="truncated or too long"):
        read_varint(data, 0)


def test_nothing_is_read_past_the_end() -> None:
    with pytest.raises(VarintError):
        read_varint(b"\x96\x01", 0, end=1)
    with pytest.raises(VarintError):
        read_varint(write_varint(2**40), 0, longest=5)
