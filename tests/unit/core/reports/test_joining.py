"""Why a member does not have its partitions yet."""

import pytest

from penstock.core.reports.joining import MemberAssignment, why_joining_takes, why_partitions_are_missing

A, B, C = ("orders", 0), ("orders", 1), ("orders", 2)


def test_a_killed_member_is_named_with_the_time_until_it_is_dropped() -> None:
    said = why_joining_takes("shop", "PreparingRebalance", others=1, waited=5, session=45)
    assert said is not None
    assert said.startswith("Joining group 'shop': the broker counts 1 other member. If it was killed")
    assert "session.timeout.ms, 45 s), at most 40 s from now" in said


def test_past_the_session_only_a_living_member_can_be_waited_for() -> None:
    said = why_joining_takes("shop", "CompletingRebalance", others=2, waited=50, session=45)
    assert said is not None
    assert "2 other members and has waited 50 s, longer than the session timeout (45 s)" in said
    assert "penstock groups describe shop" in said


@pytest.mark.parametrize(("state", "others"), [("Stable", 1), ("PreparingRebalance", 0), ("Empty", 0), ("Dead", 3)])
def test_without_other_members_to_wait_for_nothing_is_reported(state: str, others: int) -> None:
    assert why_joining_takes("shop", state, others=others, waited=5, session=45) is None


def test_with_the_new_protocol_the_partitions_that_others_still_hold_are_counted() -> None:
    members = {"killed": MemberAssignment([A, B], [A]), "new": MemberAssignment([], [B])}
    said = why_partitions_are_missing("shop", members, own={"new"}, waited=5, session=45)
    assert said is not None
    held = "1 partition that the broker assigned to this member is still held by 1 other member."
    assert said.startswith(f"Joining group 'shop': {held}")
    assert "(consumer.session.timeout.ms of the group, 45 s), at most 40 s from now; if it is alive" in said
    members = {
        "one": MemberAssignment([A], []),
        "two": MemberAssignment([B], []),
        "new": MemberAssignment([C], [A, B, C]),
    }
    said = why_partitions_are_missing("shop", members, own={"new"}, waited=50, session=45)
    assert said is not None
    assert "2 partitions that the broker assigned to this member are still held by 2 other members after 50 s" in said
    assert "penstock groups describe shop" in said


def test_an_unknown_session_timeout_is_only_named() -> None:
    members = {"killed": MemberAssignment([A], []), "new": MemberAssignment([], [A])}
    said = why_partitions_are_missing("shop", members, own={"new"}, waited=50, session=None)
    assert said is not None
    assert "session timeout (consumer.session.timeout.ms of the group); if it is alive" in said


@pytest.mark.parametrize(
    "members",
    [
        {"other": MemberAssignment([A, B], [A, B]), "new": MemberAssignment([], [])},
        {"other": MemberAssignment([A], [A]), "new": MemberAssignment([], [B])},
        {"sibling": MemberAssignment([A, B], [A]), "new": MemberAssignment([], [B])},
        {"other": MemberAssignment([A, B], [A]), "third": MemberAssignment([], [B])},
    ],
    ids=["has all that it should", "nobody holds it", "held by a member of this process", "not joined yet"],
)
def test_nothing_is_reported_if_no_other_member_holds_the_partitions(members: dict[str, MemberAssignment]) -> None:
    own = {"new", "sibling"}
    assert why_partitions_are_missing("shop", members, own=own, waited=5, session=45) is None
