"""An offset map survives writing and reading, it fits into the metadata, and hostile text is only an error."""

import base64
import random
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.offset_map import MAX_BYTES, PREFIX, Range, UnreadableMapError, decode, encode


@st.composite
def maps(draw: st.DrawFn) -> tuple[int, list[Range]]:
    point = draw(st.integers(0, 2**62))
    at, ranges = point, []
    for unfinished, finished in draw(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), max_size=60)):
        ranges.append((at + unfinished, at + unfinished + finished))
        at += unfinished + finished
    return point, ranges


@given(maps())
def test_a_map_is_read_as_it_was_written(given_map: tuple[int, list[Range]]) -> None:
    point, ranges = given_map
    text = encode(point, ranges)
    assert text is not None
    assert len(text) <= MAX_BYTES
    assert text.isascii()
    assert decode(point, text) == ranges


def test_nothing_finished_above_needs_no_text() -> None:
    assert encode(5, []) == ""
    assert decode(5, "") == []


@pytest.mark.parametrize(
    "ranges",
    [
        [(n, n + 1) for n in range(1, 20_000, 2)],  # every other one: a bitmap
        [(1, 2_000_000)],  # one long stretch: runs
        [(n * 1_000_000, n * 1_000_000 + 5) for n in range(1, 300)],  # far apart: runs
    ],
)
def test_each_shape_finds_an_encoding_that_fits(ranges: list[Range]) -> None:
    text = encode(0, ranges)
    assert text is not None
    assert len(text) <= MAX_BYTES
    assert decode(0, text) == ranges


def test_a_map_that_does_not_fit_is_reported_and_not_truncated() -> None:
    noise = random.Random(1)
    offsets = sorted(noise.sample(range(1, 2_000_000), 20_000))
    assert encode(0, [(offset, offset + 1) for offset in offsets]) is None


def test_ten_thousand_records_in_any_order_always_fit() -> None:
    noise = random.Random(2)
    for _ in range(20):
        bits = [noise.random() < 0.5 for _ in range(10_000)]
        ranges = [(n + 1, n + 2) for n, bit in enumerate(bits) if bit]
        merged: list[Range] = []
        for start, end in ranges:
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        text = encode(0, merged)
        assert text is not None
        assert decode(0, text) == merged


@given(maps(), st.integers(1, 2**62))
def test_a_map_is_not_read_with_another_commit_point(given_map: tuple[int, list[Range]], other: int) -> None:
    point, ranges = given_map
    text = encode(point, ranges)
    if text and other != point:
        with pytest.raises(UnreadableMapError, match="another commit"):
            decode(other, text)


@given(maps(), st.data())
def test_a_damaged_map_is_refused_or_means_the_same(given_map: tuple[int, list[Range]], data: st.DataObject) -> None:
    point, ranges = given_map
    text = encode(point, ranges)
    if not text:
        return
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.sampled_from("~!aZ09")) + text[at + 1 :]
    with suppress(UnreadableMapError):
        # The last characters of base 85 have more than one spelling.
        assert decode(point, changed) == ranges


def forged(kind: int, body: bytes, point: int = 0) -> str:
    """A map with a correct checksum, as an attacker would write it."""
    checksum = zlib.crc32(body, zlib.crc32(point.to_bytes(8, "big") + bytes([kind]))).to_bytes(4, "big")
    return PREFIX + base64.b85encode(bytes([kind]) + checksum + body).decode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("somebody else's", "not an offset map"),
        ("pk1:" + "0" * 5_000, "not an offset map"),
        ("pk1:\x00", "not base 85"),
        ("pk1:é", "not base 85"),
        ("pk1:", "damaged"),
        (forged(0, b"\x00\x01"), "impossible"),
        (forged(0, b"\x01\x00"), "impossible"),
        (forged(0, b"\x01"), "truncated"),
        (forged(0, b"\xff" * 20), "too long"),
        (forged(0, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" * 2), "impossible"),
        (forged(1, b""), "impossible"),
        (forged(1, b"\x01"), "impossible"),
        (forged(2, b"not zlib"), "damaged"),
        (forged(2, zlib.compress(b"\x01" * 10_000_000, 9)[:3_000]), "too large or truncated"),
        (forged(2, zlib.compress(b"\x01" * 100_000, 9)), "too large"),
        (forged(4, b"\x01\x01"), "newer version"),
    ],
)
def test_foreign_and_hostile_metadata_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(UnreadableMapError, match=reason):
        decode(0, text)


@given(st.integers(0, 3), st.binary(max_size=300))
def test_any_forged_body_is_ranges_or_a_refusal(kind: int, body: bytes) -> None:
    with suppress(UnreadableMapError):
        at = 0
        for start, end in decode(0, forged(kind, body)):
            assert at < start < end
            at = end
