"""Keys go to the same partitions as with Kafka's Java client."""

import pytest

from penstock.core.records.partitioner import murmur2, partition_for


# From the tests of Kafka's own client, where the hash is a signed number.
@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


def test_a_negative_hash_still_gives_a_partition() -> None:
    assert partition_for(b"21", 3) == (-973932308 & 0x7FFFFFFF) % 3
    assert {partition_for(b"key-%d" % n, 4) for n in range(100)} == {0, 1, 2, 3}
