"""Java's ``String.hashCode``. Kafka places groups by it, and its Java assignors depend on it."""

from struct import unpack

_BITS = 0xFFFFFFFF


def utf16(text: str) -> bytes:
    """The text in UTF-16, which is how Java compares strings. Python's order differs for characters above U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


def text_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32-bit number."""
    units = text.encode("latin-1") if text.isascii() else unpack(f">{len(utf16(text)) // 2}H", utf16(text))
    code = 0
    for unit in units:
        code = (31 * code + unit) & _BITS
    return code
