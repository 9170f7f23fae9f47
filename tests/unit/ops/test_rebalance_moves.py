"""What a rebalance moved, from the reports of several members."""

from penstock.core.reports.rebalance import LEFT, UNKNOWN, Rebalance, RebalanceMember
from penstock.ops.rebalance_history import ReportedRebalance, rounds
from penstock.ops.rebalance_moves import PartitionMove, moves_of

TP, OTHER = ("t", 0), ("t", 1)


def told(
    member: str, began: float, generation: int | None, *, reason: str = UNKNOWN, **known: object
) -> ReportedRebalance:
    rebalance = Rebalance(
        membership="self-managed", reason=reason, began=began, seconds=0.5, member_id=member.upper(),
        generation=generation, **known,  # type: ignore[arg-type]
    )  # fmt: skip
    return ReportedRebalance("g", member, rebalance)


def voter(name: str, owned: int, assigned: int) -> RebalanceMember:
    return RebalanceMember(
        id=name.upper(), static_id=None, rack=None, topics=("t",), votes=None, owned=owned, assigned=assigned
    )


def test_a_cooperative_move_shows_in_the_rebalance_that_frees_the_partition_and_in_the_one_that_assigns_it() -> None:
    voters = (voter("a", 2, 1), voter("b", 0, 0))
    history = [
        told("a", 1.0, 1, taken=(TP, OTHER), taken_at=1.2),
        told("a", 10.0, 2, given_up=(TP,), given_up_at=10.5, members=voters, leader="A"),
        told("b", 10.0, 2),
        told("b", 11.0, 3, taken=(TP,), taken_at=12.0),
        told("a", 11.0, 3),
    ]
    first, frees, assigns = moves_of(rounds(history))
    assert [each.why for each in first] == ["new", "new"]
    assert frees == [PartitionMove(TP, "a", "b", 10.5, 12.0, "balance")]
    assert assigns == frees, "the reason is that of the rebalance that freed it"


def test_a_member_may_get_back_what_it_returned() -> None:
    history = [
        told("a", 10.0, 2, given_up=(TP,), given_up_at=10.5),
        told("a", 11.0, 3, taken=(TP,), taken_at=12.0),
    ]
    frees, assigns = moves_of(rounds(history))
    assert frees == assigns == [PartitionMove(TP, "a", "a", 10.5, 12.0, "got back")]


def test_the_partitions_of_a_member_that_left_or_was_removed_say_so() -> None:
    history = [
        told("a", 1.0, None, reason=LEFT, given_up=(TP,), given_up_at=1.5),
        told("c", 1.1, None, lost=(OTHER,), lost_at=1.6),
        told("b", 2.0, 4, taken=(TP,), taken_at=2.5),
    ]
    left, lost, taken = moves_of(rounds(history))
    assert left == [PartitionMove(TP, "a", "b", 1.5, 2.5, "owner left")]
    assert lost == [PartitionMove(OTHER, "c", None, 1.6, None, "owner lost it")]
    assert taken[0].source == "a"


def test_a_returned_partition_that_nobody_here_got_is_on_its_way() -> None:
    (moves,) = moves_of(rounds([told("a", 1.0, 2, given_up=(TP,), given_up_at=1.5)]))
    assert [(each.target, each.why, each.seconds) for each in moves] == [(None, "on its way", None)]
