"""The worked examples in the first notes of this project, literally."""

import pytest

from penstock.assign import (
    ASSIGNORS,
    Assignment,
    Assignor,
    CooperativeSticky,
    Group,
    Member,
    Range,
    RoundRobin,
    Sticky,
    TopicSpread,
)
from penstock.testing.assignor_check import grown_old


def group(members: dict[str, str], **topics: int) -> Group:
    """Members with their topics, written as one text: ``C0="A B"``."""
    return Group.of([Member(id=name, topics=tuple(names.split())) for name, names in members.items()], topics)


def answer(assignor: Assignor, asked: Group) -> dict[str, str]:
    """As in the notes: topic, p, number."""
    partitions = assignor.assign(asked).partitions
    return {member: " ".join(f"{topic}p{number}" for topic, number in tps) for member, tps in partitions.items()}


def later(assignor: Assignor, asked: Group, *gone: str) -> Group:
    """The next generation, without the members that have left."""
    grown = grown_old(asked, assignor.assign(asked), 1)
    return Group(tuple(member for member in grown.members if member.id not in gone), grown.topics)


TWO = {"C0": "t0 t1", "C1": "t0 t1"}
THREE = {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"}
LETTERS = {"C0": "A", "C1": "A B", "C2": "A B C"}
STICKIES = pytest.mark.parametrize("sticky", [Sticky(), CooperativeSticky()], ids=lambda assignor: assignor.name)


def test_range_halves_each_of_two_topics_of_four() -> None:
    assert answer(Range(), group(TWO, t0=4, t1=4)) == {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t0p3 t1p2 t1p3"}


def test_range_gives_the_first_member_the_odd_partition_of_every_topic() -> None:
    assert answer(Range(), group(TWO, t0=3, t1=3)) == {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"}


def test_range_cuts_ten_partitions_into_two_stretches() -> None:
    expected = {"c0": "Ap0 Ap1 Ap2 Ap3 Ap4", "c1": "Ap5 Ap6 Ap7 Ap8 Ap9"}
    assert answer(Range(), group({"c0": "A", "c1": "A"}, A=10)) == expected


def test_range_cuts_seven_partitions_into_three_stretches() -> None:
    expected = {"c0": "Ap0 Ap1 Ap2", "c1": "Ap3 Ap4", "c2": "Ap5 Ap6"}
    assert answer(Range(), group(dict.fromkeys(("c0", "c1", "c2"), "A"), A=7)) == expected


def test_range_overloads_the_first_member_the_more_topics_there_are() -> None:
    three = group(dict.fromkeys(("c0", "c1", "c2"), "A B C"), A=7, B=7, C=7)
    assert answer(Range(), three) == {
        "c0": "Ap0 Ap1 Ap2 Bp0 Bp1 Bp2 Cp0 Cp1 Cp2",
        "c1": "Ap3 Ap4 Bp3 Bp4 Cp3 Cp4",
        "c2": "Ap5 Ap6 Bp5 Bp6 Cp5 Cp6",
    }


def test_a_fourth_topic_overloads_it_by_as_much_again() -> None:
    four = Range().assign(group(dict.fromkeys(("c0", "c1", "c2"), "A B C D"), A=7, B=7, C=7, D=7)).partitions
    assert {name: len(tps) for name, tps in four.items()} == {"c0": 12, "c1": 8, "c2": 8}


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=lambda assignor: assignor.name)
def test_a_partition_has_one_member_of_a_group_and_members_beyond_their_number_are_idle(assignor: Assignor) -> None:
    for members, partitions in ((6, 4), (4, 4), (2, 4)):
        shares = assignor.assign(group({f"c{number}": "A" for number in range(members)}, A=partitions)).partitions
        assert sorted(tp for tps in shares.values() for tp in tps) == [("A", at) for at in range(partitions)]
        if assignor.name != "consistent-hash":
            assert sum(not tps for tps in shares.values()) == max(0, members - partitions)
            assert max(len(tps) for tps in shares.values()) == max(1, partitions // members)


def test_several_groups_get_the_whole_topic_each() -> None:
    for names in ("ab", "cde"):
        shares = Range().assign(group(dict.fromkeys(names, "A"), A=4)).partitions
        assert sum(len(tps) for tps in shares.values()) == 4


def test_round_robin_over_three_topics_differs_by_one_at_most() -> None:
    shares = RoundRobin().assign(group(dict.fromkeys(("1", "2", "3"), "tp0 tp1 tp2"), tp0=3, tp1=2, tp2=3)).partitions
    assert [len(tps) for tps in shares.values()] == [3, 3, 2]


def test_round_robin_deals_on_where_the_first_topic_ended() -> None:
    assert answer(RoundRobin(), group(TWO, t0=3, t1=3)) == {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"}


def test_round_robin_deals_two_topics_of_five() -> None:
    expected = {"c0": "Ap0 Ap2 Ap4 Bp1 Bp3", "c1": "Ap1 Ap3 Bp0 Bp2 Bp4"}
    assert answer(RoundRobin(), group({"c0": "A B", "c1": "A B"}, A=5, B=5)) == expected


def test_round_robin_is_uneven_where_only_one_member_subscribes_to_a_topic() -> None:
    expected = {"c0": "Ap0 Ap2 Ap4 Bp0 Bp1 Bp2 Bp3 Bp4", "c1": "Ap1 Ap3"}
    assert answer(RoundRobin(), group({"c0": "A B", "c1": "A"}, A=5, B=5)) == expected


@pytest.mark.parametrize("last", ["t1 t2", "t0 t1 t2"])
def test_round_robin_is_uneven_where_subscriptions_differ(last: str) -> None:
    expected = {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}
    assert answer(RoundRobin(), group({**THREE, "C2": last}, t0=1, t1=2, t2=3)) == expected


def test_round_robin_with_letters_is_uneven_too() -> None:
    assert answer(RoundRobin(), group(LETTERS, A=1, B=2, C=3)) == {"C0": "Ap0", "C1": "Bp0", "C2": "Bp1 Cp0 Cp1 Cp2"}


@STICKIES
@pytest.mark.parametrize("last", ["t1 t2", "t0 t1 t2"])
def test_sticky_looks_at_the_balance_of_all(sticky: Assignor, last: str) -> None:
    # The notes print t1p1 for C2 as well, which C1 has already.
    expected = {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}
    assert answer(sticky, group({**THREE, "C2": last}, t0=1, t1=2, t2=3)) == expected


@STICKIES
def test_sticky_with_letters_looks_at_the_balance_of_all(sticky: Assignor) -> None:
    assert answer(sticky, group(LETTERS, A=1, B=2, C=3)) == {"C0": "Ap0", "C1": "Bp0 Bp1", "C2": "Cp0 Cp1 Cp2"}


@STICKIES
def test_when_a_member_leaves_sticky_moves_what_it_had_and_nothing_else(sticky: Assignor) -> None:
    left = later(sticky, group(LETTERS, A=1, B=2, C=3), "C0")
    assert answer(sticky, left) == {"C1": "Ap0 Bp0 Bp1", "C2": "Cp0 Cp1 Cp2"}


@STICKIES
def test_when_the_second_leaves_the_third_keeps_its_own(sticky: Assignor) -> None:
    left = later(sticky, group(THREE, t0=1, t1=2, t2=3), "C1")
    after = answer(sticky, left)
    assert after["C2"].split()[-3:] == ["t2p0", "t2p1", "t2p2"]
    assert after["C0"] == "t0p0"


@STICKIES
def test_twelve_rows_are_shared_by_two_then_four_then_three_then_two(sticky: Assignor) -> None:
    field = group({"a": "rows", "b": "rows"}, rows=12)
    assert _sizes(sticky, field) == [6, 6]
    field = later(sticky, field)
    field = Group((*field.members, Member(id="c", topics=("rows",)), Member(id="d", topics=("rows",))), field.topics)
    for _ in range(2):  # the cooperative protocol needs a second rebalance to assign the revoked partitions
        field = later(sticky, field)
    assert _sizes(sticky, field) == [3, 3, 3, 3]
    field = later(sticky, field, "d")
    assert _sizes(sticky, field) == [4, 4, 4]
    assert _sizes(sticky, later(sticky, field, "c")) == [6, 6]


def test_topics_are_spread_over_the_members() -> None:
    spread = TopicSpread().assign(group(dict.fromkeys(("1", "2", "3"), "tp0 tp1 tp2"), tp0=3, tp1=2, tp2=3))
    assert sorted(len(tps) for tps in spread.partitions.values()) == [2, 3, 3]
    for tps in spread.partitions.values():
        topics = [topic for topic, _ in tps]
        assert len(topics) == len(set(topics))


@STICKIES
def test_partitions_of_a_dead_member_are_halved_between_the_others(sticky: Assignor) -> None:
    had = {
        "1": (("tp0", 0), ("tp1", 1), ("tp2", 1)),
        "2": (("tp0", 1), ("tp2", 0), ("tp2", 2)),
    }
    topics = ("tp0", "tp1", "tp2")
    members = [Member(id=name, topics=topics) for name in had]
    before = Group.of(members, {"tp0": 3, "tp1": 2, "tp2": 3})
    remembered = grown_old(before, Assignment({name: list(tps) for name, tps in had.items()}), 1)
    after = sticky.assign(remembered).partitions
    for name, tps in had.items():
        assert set(tps) < set(after[name])
        assert len(after[name]) == 4


def _sizes(assignor: Assignor, asked: Group) -> list[int]:
    return [len(tps) for tps in assignor.assign(asked).settled().partitions.values()]
