"""Transactional ids: always the same for one group and partition, and different for any other."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.kafka.client.transactions import transactional_id

_TOPICS = st.text("ab.-_", min_size=1, max_size=4)
_PARTITIONS = st.tuples(st.text(max_size=4), _TOPICS, st.integers(0, 12))


def test_an_id_names_its_group_and_partition() -> None:
    assert transactional_id("shop", "orders", 3) == "shop:orders:3"


@given(_PARTITIONS, _PARTITIONS)
def test_no_two_partitions_share_an_id(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    assert (transactional_id(*one) == transactional_id(*other)) == (one == other)


def test_a_group_and_topic_that_join_to_the_same_text_have_different_ids() -> None:
    assert transactional_id("a-b", "c", 0) != transactional_id("a", "b-c", 0)
    assert transactional_id("a:b", "c", 0) != transactional_id("a", "b:c", 0)[:-2]


@given(st.text(max_size=2_000))
def test_an_id_is_short_and_plain_for_every_group(group: str) -> None:
    name = transactional_id(group, "orders", 0)
    assert len(name) < 249
    assert name.isascii()
    assert name.isprintable()


def test_long_groups_with_the_same_beginning_have_different_ids() -> None:
    assert transactional_id("x" * 300, "orders", 0) != transactional_id("x" * 301, "orders", 0)
