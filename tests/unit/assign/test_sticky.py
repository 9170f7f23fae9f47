"""Claims, generations and racks under the sticky assignors, in small groups whose answers Java gives too.

`tests/integration/assign` compares thousands; these say what it is about.
"""

import pytest

from penstock.assign import Assignor, CooperativeSticky, Group, Member, Range, Sticky, Topic
from penstock.assign.sticky.user_data import write_cooperative, write_sticky
from penstock.core.records.record import TopicPartition

STICKIES = pytest.mark.parametrize("sticky", [Sticky(), CooperativeSticky()], ids=lambda assignor: assignor.name)


def member(name: str, *owned: int, generation: int | None = 1, topics: str = "t", rack: str | None = None) -> Member:
    tps = tuple(("t", number) for number in owned)
    data = write_sticky(tps, -1 if generation is None else generation)
    return Member(id=name, topics=tuple(topics.split()), owned=tps, generation=generation, rack=rack, user_data=data)


def numbers(assignor: Assignor, members: list[Member], topics: dict[str, Topic | int]) -> dict[str, str]:
    """The partitions of topic t that each member gets."""
    answer = assignor.assign(Group.of(members, topics))
    return {name: " ".join(str(number) for _, number in tps) for name, tps in answer.partitions.items()}


@STICKIES
def test_members_keep_what_they_had(sticky: Assignor) -> None:
    assert numbers(sticky, [member("a", 3, 0), member("b", 1, 2)], {"t": 4}) == {"a": "0 3", "b": "1 2"}


@STICKIES
def test_the_newer_generation_wins_a_partition_that_two_claim(sticky: Assignor) -> None:
    members = [member("a", 0, 1, generation=4), member("b", 1, 2, generation=5)]
    assert numbers(sticky, members, {"t": 3}) == {"a": "0", "b": "1 2"}


def test_a_partition_that_two_of_one_generation_claim_is_kept_by_neither_at_once() -> None:
    members = [member("a", 0, 1), member("b", 1, 2)]
    answer = CooperativeSticky().assign(Group.of(members, {"t": 3}))
    assert answer.partitions == {"a": [("t", 0)], "b": [("t", 2)]}
    assert answer.pending == {("t", 1): "a"}


def test_a_partition_that_moves_is_withheld_from_its_new_owner() -> None:
    members = [member("a", 0, 1, 2, 3), member("b")]
    answer = CooperativeSticky().assign(Group.of(members, {"t": 4}))
    assert answer.partitions == {"a": [("t", 0), ("t", 1)], "b": []}
    assert answer.pending == {("t", 2): "b", ("t", 3): "b"}
    assert answer.settled().partitions == {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}


def test_the_eager_one_withholds_nothing() -> None:
    assert numbers(Sticky(), [member("a", 0, 1, 2, 3), member("b")], {"t": 4}) == {"a": "0 1", "b": "2 3"}


def test_old_members_have_their_generation_in_their_user_data() -> None:
    old = Member(id="a", topics=("t",), owned=(("t", 0), ("t", 1)), user_data=write_cooperative(3))
    new = Member(id="b", topics=("t",), owned=(("t", 1),), generation=4, user_data=write_cooperative(4))
    answer = CooperativeSticky().assign(Group.of([old, new], {"t": 2}))
    assert answer.partitions == {"a": [("t", 0)], "b": [("t", 1)]}


@STICKIES
def test_claims_to_what_no_longer_exists_count_for_nothing(sticky: Assignor) -> None:
    """Java lets the old owner keep partition 7, and assigns partition 0 to no member."""
    assert numbers(sticky, [member("a", 7), member("b", 1)], {"t": 2}) == {"a": "0", "b": "1"}


@STICKIES
def test_a_member_without_topics_gets_nothing(sticky: Assignor) -> None:
    """Java assigns partitions to this member if it is the first in its hash table."""
    members = [Member(id="a"), member("b", topics="t"), member("c", topics="t")]
    assert numbers(sticky, members, {"t": 4}) == {"a": "", "b": "0 2", "c": "1 3"}


@STICKIES
def test_members_keep_what_is_near_and_get_what_is_near(sticky: Assignor) -> None:
    racks = tuple(frozenset({rack}) for rack in "xyxyxy")
    members = [member("a", 0, 1, rack="x"), member("b", 4, 3, rack="y")]
    answer = sticky.assign(Group.of(members, {"t": Topic(6, racks=racks)})).settled()
    assert answer.partitions == {"a": _t(0, 2, 4), "b": _t(1, 3, 5)}


@STICKIES
def test_evenness_comes_before_racks(sticky: Assignor) -> None:
    racks = (*[frozenset({"x"})] * 5, frozenset({"y"}))
    members = [member("a", rack="x"), member("b", rack="y")]
    answer = numbers(sticky, members, {"t": Topic(6, racks=racks)})
    assert {name: len(share.split()) for name, share in answer.items()} == {"a": 3, "b": 3}


@STICKIES
def test_racks_count_even_if_subscriptions_differ(sticky: Assignor) -> None:
    racks = tuple(frozenset({rack}) for rack in "yxyx")
    members = [member("a", rack="x"), member("b", rack="y"), member("c", topics="u", rack="x")]
    topics: dict[str, Topic | int] = {"t": Topic(4, racks=racks), "u": Topic(1, racks=(frozenset({"z"}),))}
    assert numbers(sticky, members, topics) == {"a": "1 3", "b": "0 2", "c": "0"}


def test_range_gives_what_is_near_as_long_as_each_topic_stays_even() -> None:
    racks = tuple(frozenset({rack}) for rack in "yyxx")
    members = [member("a", rack="x"), member("b", rack="y")]
    assert numbers(Range(), members, {"t": Topic(4, racks=racks)}) == {"a": "2 3", "b": "0 1"}


def test_range_keeps_equal_keys_together_before_it_looks_at_racks() -> None:
    near_b = tuple(frozenset({rack}) for rack in "yyxx")
    near_a = tuple(frozenset({rack}) for rack in "xyyx")
    members = [member("a", rack="x", topics="t u"), member("b", rack="y", topics="t u")]
    group = Group.of(members, {"t": Topic(4, racks=near_b), "u": Topic(4, racks=near_a)})
    for tps in Range().assign(group).partitions.values():
        assert {number for topic, number in tps if topic == "t"} == {n for topic, n in tps if topic == "u"}


def test_static_members_come_first_and_by_their_static_ids() -> None:
    members = [
        Member(id="a", topics=("t",)),
        Member(id="b", topics=("t",), static_id="2"),
        Member(id="c", topics=("t",), static_id="1"),
    ]
    assert numbers(Range(), members, {"t": 3}) == {"a": "2", "b": "1", "c": "0"}


@STICKIES
def test_a_group_without_members_gets_an_empty_answer(sticky: Assignor) -> None:
    assert sticky.assign(Group((), {"t": Topic(1)})).partitions == {}


def _t(*numbers: int) -> list[TopicPartition]:
    return [("t", number) for number in numbers]
