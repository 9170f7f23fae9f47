"""Names of transactions: the same for the same place, and nobody else's."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.kafka.client.transactions import transactional_id

_TOPICS = st.text("ab.-_", min_size=1, max_size=4)
_PLACES = st.tuples(st.text(max_size=4), _TOPICS, st.integers(0, 12))


def test_it_tells_what_it_is_for() -> None:
    assert transactional_id("shop", "orders", 3) == "shop:orders:3"


@given(_PLACES, _PLACES)
def test_no_two_places_share_one(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    assert (transactional_id(*one) == transactional_id(*other)) == (one == other)


def test_groups_and_topics_that_run_together_are_told_apart() -> None:
    assert transactional_id("a-b", "c", 0) != transactional_id("a", "b-c", 0)
    assert transactional_id("a:b", "c", 0) != transactional_id("a", "b:c", 0)[:-2]


@given(st.text(max_size=2_000))
def test_it_is_short_and_plain_whatever_the_group(group: str) -> None:
    name = transactional_id(group, "orders", 0)
    assert len(name) < 249
    assert name.isascii()
    assert name.isprintable()


def test_long_groups_with_the_same_beginning_are_told_apart() -> None:
    assert transactional_id("x" * 300, "orders", 0) != transactional_id("x" * 301, "orders", 0)
