"""Plans: moves, their reasons, the balance, and the partitions that would stop."""

import pytest

from penstock.assign import CooperativeSticky, Group, Member, RackNear, Range, RoundRobin, Sticky, Topic
from penstock.assign.member_labels import labels
from penstock.assign.plan import Move, RebalancePause, Spread, plan, why_estimate
from penstock.assign.what_if import with_members, with_partitions, with_topics
from penstock.errors import ConfigError


def tps(topic: str, *numbers: int) -> tuple[tuple[str, int], ...]:
    return tuple((topic, number) for number in numbers)


@pytest.fixture
def group() -> Group:
    members = [
        Member(id="a", topics=("orders",), owned=tps("orders", 0, 1, 2), generation=3),
        Member(id="b", topics=("orders",), owned=tps("orders", 3, 4, 5), generation=3),
    ]
    return Group.of(members, {"orders": Topic(6, lag=(10, 0, 0, 0, 0, 20))})


def test_a_group_that_is_well_as_it_is_is_left_alone(group: Group) -> None:
    made = plan(group, CooperativeSticky())
    assert made.moves == ()
    assert made.eager == made.cooperative == RebalancePause(0, 0)
    assert made.before == made.after


@pytest.mark.parametrize("assignor", [Sticky(), CooperativeSticky()])
def test_a_new_member_takes_over_a_third(group: Group, assignor: Sticky | CooperativeSticky) -> None:
    made = plan(group, assignor, changed=with_members(group, "+1"))
    assert [(move.target, move.reason) for move in made.moves] == [("new-1", "balance")] * 2
    assert {move.source for move in made.moves} == {"a", "b"}
    assert made.after.spread == Spread(2, 2, 2.0, 0.0)
    assert made.eager == RebalancePause(6, 1, 3.0)
    assert made.cooperative == RebalancePause(2, 2, 3.0)


def test_partitions_of_a_member_that_left_move_in_one_rebalance(group: Group) -> None:
    made = plan(group, CooperativeSticky(), changed=with_members(group, "-a"))
    assert made.moves == tuple(Move(tp, "a", "b", "owner left") for tp in tps("orders", 0, 1, 2))
    assert made.cooperative == RebalancePause(3, 1, 3.0)
    assert made.eager == RebalancePause(6, 1, 3.0)


def test_new_partitions_have_no_earlier_owner(group: Group) -> None:
    made = plan(group, CooperativeSticky(), changed=with_partitions(group, {"orders": 8}))
    assert [(move.tp[1], move.source, move.reason) for move in made.moves] == [(6, None, "new"), (7, None, "new")]
    assert made.cooperative == RebalancePause(0, 1)


def test_round_robin_moves_more_than_sticky(group: Group) -> None:
    assert len(plan(group, RoundRobin()).moves) > len(plan(group, CooperativeSticky()).moves)


def test_a_plan_has_the_spread_of_lag_and_of_rate(group: Group) -> None:
    assert plan(group, Range()).before.lag == Spread(10, 20, 15.0, 5.0)
    busy = Group(group.members, {"orders": Topic(6, rate=(6.0, 0, 0, 0, 0, 2.0))})
    assert plan(busy, Range()).before.rate == Spread(2.0, 6.0, 4.0, 2.0)


def test_a_pause_costs_the_records_that_arrive_until_all_members_have_rejoined(group: Group) -> None:
    busy = Group(group.members, {"orders": Topic(6, rate=(1, 1, 10, 1, 1, 100))})
    made = plan(busy, CooperativeSticky(), changed=with_members(busy, "+1"), heartbeat=5.0)
    moved = {move.tp[1] for move in made.moves}
    assert made.eager == RebalancePause(6, 1, 5.0, 5.0 * 114)
    assert made.cooperative == RebalancePause(2, 2, 5.0, 5.0 * sum((1, 1, 10, 1, 1, 100)[number] for number in moved))


def test_moves_that_numbers_do_not_demand_are_counted_and_called_exchanges(group: Group) -> None:
    dealt = plan(group, RoundRobin())
    assert {move.reason for move in dealt.moves} == {"exchange"}
    assert dealt.beyond_need == len(dealt.moves) == 2
    grown = plan(group, RoundRobin(), changed=with_members(group, "+1"))
    assert grown.beyond_need == len(grown.moves) - 2
    assert plan(group, CooperativeSticky(), changed=with_members(group, "+1")).beyond_need == 0


def test_a_member_is_removed_by_any_name_that_is_shown() -> None:
    ids = ("orders-1-5e5d2c7e-9f7a-4e3b-8a59-2f0c3c5b1d11", "orders-1-7a1b6d0f-0f5e-4d3c-b9ad-6a1b6d0f0f5e", "x")
    members = [Member(id=name, topics=("t",), client="orders-1" if name != "x" else "lone") for name in ids]
    group = Group.of([*members, Member(id="y", topics=("t",), static_id="shelf", client="lone")], {"t": 4})
    assert list(labels(group).values()) == ["orders-1-5e5d2c", "orders-1-7a1b6d", "lone", "shelf"]
    for name, gone in (("orders-1-7a1b6d", ids[1]), (ids[0], ids[0]), ("shelf", "y"), ("lone", "x")):
        assert gone not in {member.id for member in with_members(group, f"-{name}").members}
        assert len(with_members(group, f"-{name}").members) == 3
    with pytest.raises(ConfigError, match="2 members have the name"):
        with_members(group, "-orders-1")


def test_partitions_that_are_read_across_racks_are_counted() -> None:
    racks = (frozenset({"x"}), frozenset({"y"}))
    members = [
        Member(id="a", topics=("t",), rack="x", owned=tps("t", 1)),
        Member(id="b", topics=("t",), rack="y", owned=tps("t", 0)),
    ]
    made = plan(Group.of(members, {"t": Topic(2, racks=racks)}), RackNear())
    assert (made.before.far, made.after.far) == (2, 0)
    assert {move.reason for move in made.moves} == {"nearer"}


def test_a_topic_that_is_dropped_leaves_and_one_that_is_added_comes(group: Group) -> None:
    made = plan(group, CooperativeSticky(), changed=with_topics(group, ["-orders", "+returns"]))
    assert [(move.tp, move.reason) for move in made.moves] == [(("returns", 0), "new")]


def test_a_number_of_members_is_reached_from_both_sides(group: Group) -> None:
    assert [member.id for member in with_members(group, "=4").members] == ["a", "b", "new-1", "new-2"]
    assert [member.id for member in with_members(group, "=1").members] == ["a"]


@pytest.mark.parametrize("change", ["2", "-nobody", "=0", "+x", ""])
def test_a_change_of_members_that_makes_no_sense_is_refused(group: Group, change: str) -> None:
    with pytest.raises(ConfigError):
        with_members(group, change)


@pytest.mark.parametrize("counts", [{"orders": 3}, {"unknown": 3}])
def test_a_change_of_partitions_that_kafka_cannot_do_is_refused(group: Group, counts: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        with_partitions(group, counts)


@pytest.mark.parametrize("change", ["orders", "+", ""])
def test_a_change_of_topics_that_makes_no_sense_is_refused(group: Group, change: str) -> None:
    with pytest.raises(ConfigError):
        with_topics(group, [change])


def test_a_plan_for_an_empty_group_is_empty() -> None:
    made = plan(Group(()), CooperativeSticky())
    assert made.after.spread == Spread(0, 0, 0.0, 0.0)
    with pytest.raises(ConfigError, match="neither members nor topics"):
        with_members(Group(()), "+1")


def test_members_of_an_empty_group_are_taken_to_read_all_of_its_topics() -> None:
    made = plan(Group.of([], {"orders": 4}), Range(), changed=with_members(Group.of([], {"orders": 4}), "=2"))
    assert {name: len(had) for name, had in made.after.partitions.items()} == {"new-1": 2, "new-2": 2}
    assert made.eager == RebalancePause(0, 1)


def test_the_last_member_cannot_be_taken_out() -> None:
    with pytest.raises(ConfigError, match="without members"):
        with_members(Group((Member(id="a"),)), "-a")


@pytest.mark.parametrize("name", ["range", "roundrobin", "cooperative-sticky"])
def test_a_plan_is_an_estimate_if_librdkafka_may_decide_unless_all_members_are_self_managed(name: str) -> None:
    assert "librdkafka" in (why_estimate(name, all_open=False, by_broker=False) or "")
    assert why_estimate(name, all_open=True, by_broker=False) is None


def test_a_plan_is_no_estimate_if_only_java_or_penstock_can_decide_unless_the_broker_does() -> None:
    assert why_estimate("sticky", all_open=False, by_broker=False) is None
    assert why_estimate("lag-balanced", all_open=False, by_broker=False) is None
    assert "the broker divides" in (why_estimate("sticky", all_open=False, by_broker=True) or "")
