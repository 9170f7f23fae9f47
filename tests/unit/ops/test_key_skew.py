"""Keys counted in bounded memory."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops.key_skew import KeySketch, _starts


@given(st.lists(st.tuples(st.none() | st.binary(max_size=2), st.integers(0, 3)), max_size=500))
def test_a_few_keys_are_counted_exactly_with_their_partitions(records: list[tuple[bytes | None, int]]) -> None:
    sketch = KeySketch("orders", 4)
    for key, partition in records:
        sketch.add(key, partition)
    found = sketch.survey()
    exact = Counter(key for key, _ in records if key is not None)
    assert {each.key: each.least for each in found.keys} == dict(exact)
    assert all(each.least == each.most for each in found.keys)
    assert all(set(each.partitions) == {at for key, at in records if key == each.key} for each in found.keys)
    assert found.unkeyed == sum(key is None for key, _ in records)
    assert found.total == len(records)


def test_a_hot_key_among_very_many_is_found_within_its_bounds() -> None:
    sketch = KeySketch("orders", 8)
    for number in range(100_000):
        sketch.add(b"k%d" % number, number % 8)
        if number % 10 == 0:
            sketch.add(b"hot", 5)
    found = sketch.survey()
    hottest = found.keys[0]
    assert (hottest.key, hottest.partitions) == (b"hot", (5,))
    assert hottest.least <= 10_000 <= hottest.most
    assert hottest.most - hottest.least <= 0.001 * found.total
    assert 0.9 < found.distinct / 100_001 < 1.1


def test_a_sample_has_the_same_share_of_every_partition() -> None:
    bounds = {("t", 0): Bounds(100, 1_100), ("t", 1): Bounds(0, 10), ("t", 2): Bounds(5, 5)}
    assert _starts(bounds, 101) == {("t", 0): 1_000, ("t", 1): 9, ("t", 2): 5}
    assert _starts(bounds, None) == _starts(bounds, 5_000) == {("t", 0): 100, ("t", 1): 0, ("t", 2): 5}
