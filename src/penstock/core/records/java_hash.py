"""The hash code that Java computes of a text; Kafka places groups and orders members by it."""

from struct import unpack

_BITS = 0xFFFFFFFF


def utf16(text: str) -> bytes:
    """The units of a text in Java; Java compares texts by them, and Python would sort the rarer half otherwise."""
    return text.encode("utf-16-be", "surrogatepass")


def text_hash(text: str) -> int:
    """``String.hashCode``, as an unsigned number."""
    units = text.encode("latin-1") if text.isascii() else unpack(f">{len(utf16(text)) // 2}H", utf16(text))
    code = 0
    for unit in units:
        code = (31 * code + unit) & _BITS
    return code
