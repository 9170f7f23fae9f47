"""What a member that has no assignment yet is said to wait for."""

import pytest

from penstock.core.joining import why_joining_takes


def test_a_killed_member_is_named_with_the_time_until_it_is_dropped() -> None:
    said = why_joining_takes("shop", "PreparingRebalance", others=1, waited=5, session=45)
    assert said is not None
    assert said.startswith("Joining group 'shop': the broker counts 1 other member. One that was killed")
    assert "session.timeout.ms, 45 s), at most 40 s from now" in said


def test_past_the_session_only_a_living_member_can_be_waited_for() -> None:
    said = why_joining_takes("shop", "Reconciling", others=2, waited=50, session=45)
    assert said is not None
    assert "2 other members and has waited 50 s, longer than the session timeout (45 s)" in said
    assert "penstock groups describe shop" in said


@pytest.mark.parametrize(("state", "others"), [("Stable", 1), ("PreparingRebalance", 0), ("Empty", 0), ("Dead", 3)])
def test_where_nobody_is_waited_for_nothing_is_said(state: str, others: int) -> None:
    assert why_joining_takes("shop", state, others=others, waited=5, session=45) is None
