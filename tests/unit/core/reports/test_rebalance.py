"""Rebalances: their reasons, as far as these are known, and how long partitions had no owner."""

from penstock.core.reports.rebalance import (
    HANDED_OVER,
    UNKNOWN,
    Coordinator,
    GroupChange,
    GroupSnapshot,
    OngoingRebalance,
    change_between,
    without_owner,
)


def why(before: GroupSnapshot, after: GroupSnapshot) -> str:
    change = change_between(before, after)
    return UNKNOWN if change is None else change.describe()


def view(members: str, *, partitions: int = 4, topics: str = "t", pending: bool = False) -> GroupSnapshot:
    names = members.split()
    return GroupSnapshot(frozenset(names), dict.fromkeys(names, frozenset(topics.split())), {"t": partitions}, pending)


def test_a_leader_explains_a_rebalance_by_what_changed_since_the_last_one() -> None:
    assert why(view("a"), view("a b")) == "joined: b"
    assert why(view("a b c"), view("a")) == "left or timed out: b, c"
    assert why(view("a b"), view("a c")) == "joined: c; left or timed out: b"
    assert why(view("a"), view("a", partitions=8)) == "the number of partitions of t changed"
    assert why(view("a"), view("a", topics="t u")) == "a member's topics changed"
    assert why(view("a b", pending=True), view("a b")) == HANDED_OVER


def test_an_unknowable_reason_is_unknown() -> None:
    assert change_between(view("a b"), view("a b")) is None
    assert GroupChange().describe() == UNKNOWN


def test_a_member_that_sent_leave_group_did_not_time_out() -> None:
    change = GroupChange(joined=("d",), gone=("b", "c")).with_known_leavers({"c"})
    assert change.describe() == "joined: d; left: c; left or timed out: b"
    assert GroupChange(gone=("b",)).with_known_leavers({"b", "x"}).describe() == "left: b"
    assert GroupChange(joined=("b",)).with_known_leavers({"b"}).describe() == "joined: b"


def test_a_rebalance_carries_what_changed_as_data_and_as_text() -> None:
    ongoing = OngoingRebalance("self-managed", UNKNOWN, now=10.0, moment=1_000.0)
    ongoing.explain(GroupChange(joined=("d",), resized=("t",)))
    finished = ongoing.finished(now=11.0)
    assert finished.reason == "joined: d; the number of partitions of t changed"
    assert finished.change == GroupChange(joined=("d",), resized=("t",))


def test_a_partition_has_no_owner_from_the_last_word_of_one_to_the_first_of_the_next() -> None:
    moves = [
        (1.0, "taken", "a", ("t", 0)),
        (5.5, "taken", "b", ("t", 0)),
        (5.0, "given up", "a", ("t", 0)),
        (6.0, "taken", "b", ("t", 1)),
    ]
    found = {(each.owner, each.tp): each.seconds for each in without_owner(moves)}
    assert found == {("a", ("t", 0)): None, ("b", ("t", 0)): 0.5, ("b", ("t", 1)): None}


def test_phases_follow_each_other_and_moments_are_by_the_calendar() -> None:
    story = OngoingRebalance("self-managed", UNKNOWN, now=10.0, moment=1_000.0)
    story.phase("joined", now=10.5)
    story.took([("t", 1), ("t", 0)], now=10.75)
    story.phase("taken over", now=10.75)
    reported = story.finished(now=11.0)
    assert [(phase.name, phase.seconds) for phase in reported.phases] == [("joined", 0.5), ("taken over", 0.25)]
    assert (reported.began, reported.taken_at, reported.seconds) == (1_000.0, 1_000.75, 1.0)
    assert reported.taken == (("t", 0), ("t", 1))


def test_a_coordinator_is_explained_by_the_groups_hash() -> None:
    known = Coordinator.of("orders", node=1, address="h:9", offsets_partitions=10)
    reported = "broker 1 (h:9) leads __consumer_offsets[1], as the group's hash 1008770331 modulo 10 is 1"
    assert known.explained() == reported
    unknown = Coordinator.of("orders", node=1, address="h:9", offsets_partitions=None)
    assert unknown.explained() == "broker 1 (h:9)"
