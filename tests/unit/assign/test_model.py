"""Impossible groups are refused with one clear error; any user data can be read."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.assign import Assignment, Group, Member, Topic, faults
from penstock.assign.java_order import hash_order
from penstock.assign.sticky.user_data import read_cooperative, read_sticky, write_cooperative, write_sticky
from penstock.errors import ConfigError

BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: Member(id=""), "the id ''"),
    (lambda: Member(id="a", topics="orders"), "a single text"),  # type: ignore[arg-type]
    (lambda: Member(id="a", owned=("orders-0",)), "not a partition"),  # type: ignore[arg-type]
    (lambda: Member(id="a", owned=(("orders",),)), "not a partition"),  # type: ignore[arg-type]
    (lambda: Member(id="a", weight=0), "weight 0"),
    (lambda: Member(id="a", weight=float("nan")), "weight nan"),
    (lambda: Topic(-1), "-1 partitions"),
    (lambda: Topic(partitions=True), "True partitions"),
    (lambda: Topic(2, racks=(frozenset({"a"}),)), "1 entry in racks"),
    (lambda: Topic(1, racks=("a",)), "the text 'a'"),  # type: ignore[arg-type]
    (lambda: Topic(1, lag=(-1,)), "lag holds"),
    (lambda: Group((Member(id="a"), Member(id="a"))), "id 'a'"),
    (lambda: Group((Member(id="a", static_id="s"), Member(id="b", static_id="s"))), "static id 's'"),
    (lambda: Group((), {"orders": 3}), "Topic 'orders' is 3"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(("make", "text"), BAD, ids=[text for _, text in BAD])
def test_an_impossible_group_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make()
    assert text in raised.value.problem
    assert raised.value.hint


def test_a_negative_generation_means_none() -> None:
    assert Member(id="a", generation=-1).generation is None


def test_every_fault_of_an_answer_is_named() -> None:
    group = Group.of([Member(id="a", topics=("t",)), Member(id="b")], {"t": 3, "other": 1})
    answer = Assignment({"a": [("t", 0), ("t", 0), ("other", 0)], "b": [("t", 1)]})
    found = " ".join(faults(group, answer))
    for text in ("assigned 2 times", "no subscriber", "assigned to nobody", "b gets ('t', 1) but does not"):
        assert text in found
    assert "members" in faults(group, Assignment({"a": []}))[0]


@given(st.lists(st.tuples(st.text(max_size=20), st.integers(0, 2**31 - 1)), unique=True), st.integers(-1, 2**31 - 1))
def test_user_data_comes_back_as_it_was(owned: list[tuple[str, int]], generation: int) -> None:
    back, when = read_sticky(write_sticky(owned, generation))
    assert set(back) == set(owned)
    assert when == generation
    assert read_cooperative(write_cooperative(generation)) == generation


@given(st.binary(max_size=60))
def test_no_user_data_breaks_the_leader(data: bytes) -> None:
    read_sticky(data)
    read_cooperative(data)


def test_cut_off_user_data_is_worth_nothing_but_without_a_generation_it_is() -> None:
    whole = write_sticky([("orders", 1)], 7)
    assert read_sticky(whole[:-4]) == ([("orders", 1)], None)
    assert read_sticky(whole[:-5]) == ([], -1)
    assert read_sticky(b"\x7f\xff\xff\xff") == ([], -1)
    assert read_sticky(b"") == read_sticky(None) == ([], None)
    assert read_cooperative(b"\0") == -1
    assert read_cooperative(None) is None


def test_members_come_in_the_order_of_a_hash_map() -> None:
    # The order in which Java 17 prints the key set of a HashMap with these keys.
    texts = ["q", "a", "b", "Aa", "BB", "consumer-1", "zz-9", "é"]
    assert [texts[at] for at in hash_order(texts)] == ["Aa", "BB", "q", "a", "b", "zz-9", "é", "consumer-1"]
    many = [f"c{number}" for number in range(14)]
    assert [many[at] for at in hash_order(many)][:5] == ["c11", "c10", "c13", "c12", "c0"]
