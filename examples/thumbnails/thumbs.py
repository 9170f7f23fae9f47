"""Makes small pictures of large ones, on all processors: `penstock run thumbs:app`.

The pictures are PNG files in shades of grey, read and written with zlib alone. Use the imaging library that you like.
"""

import struct
import zlib

from penstock import App, Reject

app = App("thumbnails")

SIZE = 32
"""The longest side of a thumbnail."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def read_png(data: bytes) -> list[bytes]:
    """Return the rows of a picture with 8 bits for each pixel."""
    if not data.startswith(_SIGNATURE):
        raise Reject("this is not a PNG file")
    at, width, packed = len(_SIGNATURE), 0, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body, at = data[at + 8 : at + 8 + length], at + 12 + length
        if kind == b"IHDR":
            width, _, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            if (depth, colours, interlaced) != (8, 0, 0):
                raise Reject(f"depth {depth} and colour type {colours} are not supported")
        elif kind == b"IDAT":
            packed += body
    pixels = zlib.decompress(packed)
    if any(pixels[:: width + 1]):
        raise Reject("its rows are filtered, which is not supported")
    return [pixels[row + 1 : row + 1 + width] for row in range(0, len(pixels), width + 1)]


def write_png(rows: list[bytes]) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return _SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def shrink(rows: list[bytes]) -> list[bytes]:
    """Return the picture with the mean of each square of pixels."""
    step = -(-max(len(rows), len(rows[0])) // SIZE)

    def mean(top: int, left: int) -> int:
        square = [pixel for row in rows[top : top + step] for pixel in row[left : left + step]]
        return sum(square) // len(square)

    return [bytes(mean(top, left) for left in range(0, len(rows[0]), step)) for top in range(0, len(rows), step)]


# Each worker is a process, because this work needs a processor. A crash of one is an attempt of its record.
@app.consume("pictures", to="thumbnails", dead_letter="pictures.dlq", workers="process", concurrency=4, timeout="30s")
def thumbnail(picture: bytes) -> bytes:
    return write_png(shrink(read_png(picture)))
