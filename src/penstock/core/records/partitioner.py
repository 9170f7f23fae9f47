"""The partition of a key, by murmur2: as in Kafka's Java client and in every producer of Penstock."""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_WORD = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def partition_for(key: bytes, partitions: int) -> int:
    return (murmur2(key) & _POSITIVE) % partitions


def murmur2(data: bytes) -> int:
    """The hash as an unsigned 32-bit number."""
    mixed = _SEED ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _M & _WORD
        word ^= word >> _R
        mixed = (mixed * _M & _WORD) ^ (word * _M & _WORD)
    if whole < len(data):
        mixed ^= int.from_bytes(data[whole:], "little")
        mixed = mixed * _M & _WORD
    mixed ^= mixed >> 13
    mixed = mixed * _M & _WORD
    return mixed ^ (mixed >> 15)
