"""Properties of all assignors, and of each assignor that only Penstock has."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from penstock.assign import (
    ASSIGNORS,
    Assignment,
    Assignor,
    CooperativeSticky,
    Group,
    LagBalanced,
    Member,
    RackNear,
    RoundRobin,
    Sticky,
    Topic,
    TopicSpread,
    assignor_named,
)
from penstock.assign.rack_exchange import is_near
from penstock.errors import ConfigError, SetupError
from penstock.testing import check_assignor
from penstock.testing.assignor_check import assert_settles, groups, grown_old

ALL = [*ASSIGNORS.values(), RackNear(first="near"), LagBalanced(by="cost", tolerance=0)]
KEEPING = [TopicSpread(), RackNear(), LagBalanced(), CooperativeSticky()]
quickly = settings(max_examples=80)


@pytest.mark.parametrize("assignor", ALL, ids=str)
def test_every_assignor_passes_the_check_that_users_have(assignor: Assignor) -> None:
    # If subscriptions differ, Kafka's sticky assignors may keep moving partitions, and Penstock's do the same.
    check_assignor(assignor, examples=60, settles=not isinstance(assignor, Sticky | CooperativeSticky))


@pytest.mark.parametrize("assignor", [Sticky(), CooperativeSticky()], ids=str)
@given(group=groups(alike=True))
@quickly
def test_a_sticky_assignor_moves_nothing_where_nothing_has_changed_and_subscriptions_are_equal(
    assignor: Assignor, group: Group
) -> None:
    assert_settles(assignor, group)


def sizes(answer: Assignment) -> list[int]:
    return [len(tps) for tps in answer.settled().partitions.values()]


def by_topic(answer: Assignment, topic: str, group: Group) -> list[int]:
    readers = [member.id for member in group.members if topic in member.topics]
    return [sum(tp[0] == topic for tp in answer.partitions[reader]) for reader in readers]


@given(groups())
@quickly
def test_topic_spread_gives_subscribers_equally_many_of_each_topic_or_one_more(group: Group) -> None:
    answer = TopicSpread().assign(group)
    for topic in group.topics:
        counts = by_topic(answer, topic, group)
        assert not counts or max(counts) - min(counts) <= 1


@given(groups(alike=True))
@quickly
def test_topic_spread_is_even_in_all_where_subscriptions_are_equal(group: Group) -> None:
    counts = sizes(TopicSpread().assign(group))
    assert max(counts) - min(counts) <= 1


@given(groups(alike=True))
@quickly
def test_rack_near_is_even_first(group: Group) -> None:
    counts = sizes(RackNear().assign(group))
    assert max(counts) - min(counts) <= 1


def far(group: Group, answer: Assignment) -> list[tuple[Member, tuple[str, int]]]:
    return [
        (member, tp)
        for member in group.members
        for tp in answer.partitions[member.id]
        if not is_near(member, _racks(group, tp))
    ]


def _racks(group: Group, tp: tuple[str, int]) -> frozenset[str]:
    racks = group.topics[tp[0]].racks
    return racks[tp[1]] if racks else frozenset()


@given(groups())
@quickly
def test_no_exchange_of_two_partitions_would_bring_rack_near_nearer(group: Group) -> None:
    answer = RackNear().assign(group)
    for member, tp in far(group, answer):
        for other in group.members:
            if tp[0] in other.topics and is_near(other, _racks(group, tp)):
                assert not any(
                    theirs[0] in member.topics
                    and (is_near(member, _racks(group, theirs)) or not is_near(other, _racks(group, theirs)))
                    for theirs in answer.partitions[other.id]
                )


@given(groups())
@quickly
def test_with_racks_first_only_partitions_without_a_member_in_their_rack_are_far(group: Group) -> None:
    for _, tp in far(group, RackNear(first="near").assign(group)):
        readers = [member for member in group.members if tp[0] in member.topics]
        assert not any(is_near(reader, _racks(group, tp)) for reader in readers)


def test_rack_near_finds_the_even_assignment_in_which_all_are_near() -> None:
    racks = tuple(frozenset({rack}) for rack in "bbbaaa")
    members = [Member(id="1", topics=("t",), rack="a"), Member(id="2", topics=("t",), rack="b")]
    group = Group.of(members, {"t": Topic(6, racks=racks)})
    assert RackNear().assign(group).partitions == {
        "1": [("t", 3), ("t", 4), ("t", 5)],
        "2": [("t", 0), ("t", 1), ("t", 2)],
    }


@given(groups(alike=True))
@quickly
def test_lag_balanced_ends_where_no_move_from_the_most_loaded_helps(group: Group) -> None:
    group = Group(tuple(replace(member, weight=1.0) for member in group.members), group.topics)
    answer = LagBalanced(tolerance=0.1).assign(group).partitions
    work = {member: [max(1, _lag(group, tp)) for tp in tps] for member, tps in answer.items()}
    loads = {member: sum(figures) for member, figures in work.items()}
    most = max(loads, key=loads.__getitem__)
    mean = sum(loads.values()) / len(loads)
    if loads[most] > 1.1 * mean:
        assert loads[most] - min(loads.values()) <= min(work[most])


def _lag(group: Group, tp: tuple[str, int]) -> int:
    lag = group.topics[tp[0]].lag
    return lag[tp[1]] if lag else 1


def test_lag_balanced_evens_out_work_instead_of_partitions() -> None:
    members = [Member(id=name, topics=("t",)) for name in ("a", "b")]
    group = Group.of(members, {"t": Topic(5, lag=(1_000, 250, 250, 250, 250))})
    assert sizes(LagBalanced().assign(group)) == [1, 4]


def test_lag_balanced_gives_more_to_more_weight() -> None:
    members = [Member(id="a", topics=("t",), weight=3), Member(id="b", topics=("t",))]
    assert sizes(LagBalanced().assign(Group.of(members, {"t": 40}))) == [30, 10]


def test_lag_balanced_moves_nothing_for_a_small_difference() -> None:
    members = [Member(id="a", topics=("t",), owned=(("t", 0),)), Member(id="b", topics=("t",), owned=(("t", 1),))]
    group = Group.of(members, {"t": Topic(2, lag=(105, 100))})
    assert LagBalanced().assign(group).partitions == {"a": [("t", 0)], "b": [("t", 1)]}


@pytest.mark.parametrize("assignor", KEEPING, ids=str)
def test_when_a_member_leaves_the_others_keep_most_of_what_they_had(assignor: Assignor) -> None:
    topics = {"orders": 60, "returns": 24}
    group = Group.of([Member(id=f"c{number}", topics=tuple(topics)) for number in range(8)], topics)
    grown = grown_old(group, assignor.assign(group), 1)
    before = assignor.assign(grown).owners()
    after = assignor.assign(Group(grown.members[1:], grown.topics)).settled().owners()
    moved = Counter(after[tp] != owner for tp, owner in before.items() if owner != "c0")[True]
    assert moved <= len(before) // 10


def test_round_robin_does_not_keep_what_members_had() -> None:
    """Proves that the test above can fail: this assignor moves nearly all partitions."""
    group = Group.of([Member(id=f"c{number}", topics=("orders",)) for number in range(8)], {"orders": 84})
    before = RoundRobin().assign(group).owners()
    after = RoundRobin().assign(Group(group.members[1:], group.topics)).owners()
    assert sum(after[tp] != owner for tp, owner in before.items() if owner != "c0") > len(before) // 2


def test_a_wrong_assignor_is_found_out() -> None:
    class Forgetful:
        name = "forgetful"

        def assign(self, group: Group) -> Assignment:
            answer = RoundRobin().assign(group)
            return Assignment({member: tps[:3] for member, tps in answer.partitions.items()})

    with pytest.raises(AssertionError, match="is assigned to nobody"):
        check_assignor(Forgetful())


def test_an_assignor_that_looks_at_the_order_of_members_is_found_out() -> None:
    class First:
        name = "first"

        def assign(self, group: Group) -> Assignment:
            answer: dict[str, list[tuple[str, int]]] = {member.id: [] for member in group.members}
            for tp in group.topic_partitions():
                answer[next(member.id for member in group.members if tp[0] in member.topics)].append(tp)
            return Assignment(answer)

    with pytest.raises(AssertionError, match="in another order"):
        check_assignor(First())


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'roundrobin'"):
        assignor_named("round-robin")
    assert assignor_named("sticky").name == "sticky"


@pytest.mark.parametrize(
    "make",
    [
        lambda: RackNear(first="far"),  # type: ignore[arg-type]
        lambda: LagBalanced(by="size"),  # type: ignore[arg-type]
        lambda: LagBalanced(tolerance=-1),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(make: Callable[[], Assignor]) -> None:
    with pytest.raises(ConfigError):
        make()


def test_without_hypothesis_the_check_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(SetupError, match="pip install hypothesis"):
        check_assignor(RoundRobin())
