"""Variable-length integers: seven bits in each byte, and the high bit says that more bytes follow.

Kafka's records, Avro, Protobuf and Penstock's offset maps all use this form. ``zigzag`` and ``from_zigzag`` map signed
numbers to unsigned ones and back, so that small negative numbers stay short.
"""

LONGEST = 10  # bytes of a 64-bit number
_SEVEN_BITS, _MORE = 0x7F, 0x80


class VarintError(ValueError):
    """The data ends before the number does, or the number is longer than allowed."""


def write_varint(number: int) -> bytes:
    """Encode a number that is not negative."""
    out = bytearray()
    while number > _SEVEN_BITS:
        out.append(number & _SEVEN_BITS | _MORE)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int, *, end: int | None = None, longest: int = LONGEST) -> tuple[int, int]:
    """Return the number at this position, and the position after it."""
    stop = at + longest if end is None else min(end, at + longest)
    number = 0
    for index, byte in enumerate(data[at:stop]):
        number |= (byte & _SEVEN_BITS) << (7 * index)
        if byte < _MORE:
            return number, at + index + 1
    raise VarintError("a number is truncated or too long")


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def from_zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
