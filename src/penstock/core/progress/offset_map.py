"""The offset map: the finished offsets above the commit point, encoded as text for the commit's metadata.

A commit is a single offset, but while many records are in progress, some records above it are already finished. The map
lists them, so that a restart or a rebalance does not process them again. The text is ``pk1:`` followed by the base 85
encoding of

    encoding (1 byte) · CRC-32 of the commit point, encoding and body (4 bytes) · body

The body is either a list of runs (alternating lengths of unfinished and finished offsets, as varints) or a bitmap, each
plain or compressed; ``encode`` picks the smallest. The checksum includes the commit point, so a map is never applied to
another commit.

Any client can write metadata. So decoding has bounds on time and memory, and every problem raises the same exception.
If a map cannot be read, some finished records are processed again; nothing is lost.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Sequence

from penstock.core.records.varints import VarintError, read_varint, write_varint

MAX_BYTES = 4096
"""Kafka's default limit for the metadata of a commit (``offset.metadata.max.bytes``)."""

PREFIX = "pk1:"

Range = tuple[int, int]
"""First offset and end offset; the end is not included."""

_RUNS, _BITMAP, _PACKED = 0, 1, 2  # _PACKED is a flag that is added to one of the other two
_HEADER_BYTES = 5
# Base 85 encodes four bytes as five characters.
MAX_BODY_BYTES = (MAX_BYTES - len(PREFIX)) // 5 * 4 - _HEADER_BYTES

_MAX_UNPACKED_BYTES = 64 * 1024
_MAX_VARINT_BYTES = 9  # offsets have 63 bits
_MAX_OFFSET = 2**63 - 1


class UnreadableMapError(ValueError):
    """The metadata is not an offset map, or it is damaged, or it belongs to another commit."""


def joined(*parts: Iterable[Range]) -> list[Range]:
    """The union of these ranges: ascending, and without overlaps or adjacent ranges."""
    ranges: list[Range] = []
    for first, end in sorted(each for part in parts for each in part):
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
        else:
            ranges.append((first, end))
    return ranges


def encode(point: int, finished: Sequence[Range]) -> str | None:
    """The map as text; empty if nothing above the commit point is finished, None if the map exceeds ``MAX_BYTES``.

    ``finished`` are ranges above ``point``, ascending and neither overlapping nor adjacent.
    """
    if not finished:
        return ""
    runs = _to_runs(point, finished)
    bodies = {_RUNS: runs}
    if (finished[-1][1] - point) // 8 < _MAX_UNPACKED_BYTES:
        bodies[_BITMAP] = _to_bitmap(point, finished)
    bodies |= {kind | _PACKED: zlib.compress(body, 9) for kind, body in bodies.items()}
    kind, body = min(bodies.items(), key=lambda each: len(each[1]))
    if len(body) > MAX_BODY_BYTES:
        return None
    raw = bytes([kind]) + _checksum(point, kind, body) + body
    return PREFIX + base64.b85encode(raw).decode("ascii")


def decode(point: int, text: str) -> list[Range]:
    """The ranges in a text that ``encode`` made for this commit point; raises UnreadableMapError for any other text."""
    if not text:
        return []
    if not text.startswith(PREFIX) or len(text) > MAX_BYTES:
        raise UnreadableMapError("it is not an offset map of Penstock")
    try:
        raw = base64.b85decode(text[len(PREFIX) :])
    except ValueError as error:
        raise UnreadableMapError("it is not base 85") from error
    kind, checksum, body = raw[:1], raw[1:_HEADER_BYTES], raw[_HEADER_BYTES:]
    if not kind or checksum != _checksum(point, kind[0], body):
        raise UnreadableMapError("it is damaged, or belongs to another commit")
    if kind[0] & _PACKED:
        body = _unpack(body)
    if kind[0] & ~_PACKED == _RUNS:
        return list(_from_runs(point, body))
    if kind[0] & ~_PACKED == _BITMAP:
        return list(_from_bitmap(point, body))
    raise UnreadableMapError(f"its encoding {kind[0]} is unknown; a newer version of Penstock may have written it")


def _to_runs(point: int, finished: Iterable[Range]) -> bytes:
    out, at = bytearray(), point
    for start, end in finished:
        out += write_varint(start - at) + write_varint(end - start)
        at = end
    return bytes(out)


def _from_runs(point: int, body: bytes) -> Iterator[Range]:
    at, position = point, 0
    while position < len(body):
        try:
            unfinished, position = read_varint(body, position, longest=_MAX_VARINT_BYTES)
            length, position = read_varint(body, position, longest=_MAX_VARINT_BYTES)
        except VarintError as error:
            raise UnreadableMapError("a number in it is truncated or too long") from error
        start, at = at + unfinished, at + unfinished + length
        if unfinished < 1 or length < 1 or at > _MAX_OFFSET:
            raise UnreadableMapError("its runs are impossible")
        yield start, at


def _to_bitmap(point: int, finished: Iterable[Range]) -> bytes:
    bits = 0
    for start, end in finished:
        bits |= ((1 << (end - start)) - 1) << (start - point)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _from_bitmap(point: int, body: bytes) -> Iterator[Range]:
    bits, at = int.from_bytes(body, "little"), point
    if bits & 1 or not bits:
        raise UnreadableMapError("its bitmap is impossible")
    while bits:
        zeros = (bits & -bits).bit_length() - 1
        bits >>= zeros
        ones = (~bits & (bits + 1)).bit_length() - 1
        bits >>= ones
        yield at + zeros, at + zeros + ones
        at += zeros + ones


def _unpack(body: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(body, _MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise UnreadableMapError("its compressed body is damaged") from error
    if not unpacker.eof:
        raise UnreadableMapError("its compressed body is too large or truncated")
    return unpacked


def _checksum(point: int, kind: int, body: bytes) -> bytes:
    return zlib.crc32(body, zlib.crc32(point.to_bytes(8, "big") + bytes([kind]))).to_bytes(4, "big")
