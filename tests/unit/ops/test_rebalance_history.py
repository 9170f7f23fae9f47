"""Histories of rebalances: limited in size, and merged from the reports of members."""

from pathlib import Path

from penstock.core.reports.events import Rebalanced
from penstock.core.reports.rebalance import JOINED, LEFT, UNKNOWN, GroupChange, Rebalance, RebalanceMember
from penstock.ops.rebalance_history import HistoryFile, read_history, rounds
from penstock.paths import REBALANCES_SUFFIX

TP = ("t", 0)


def told(
    member: str,
    began: float,
    *,
    group: str = "g",
    reason: str = UNKNOWN,
    membership: str = "self-managed",
    **known: object,
) -> Rebalanced:
    rebalance = Rebalance(membership=membership, reason=reason, began=began, seconds=0.5, **known)  # type: ignore[arg-type]
    return Rebalanced(group=group, member=member, rebalance=rebalance)


def write(folder: Path, name: str, *events: Rebalanced, kept: int = 100) -> Path:
    path = folder / f"{name}{REBALANCES_SUFFIX}"
    file = HistoryFile(path, kept=kept)
    for event in events:
        file.add(event)
    return path


def test_a_file_keeps_the_latest_within_bounds(tmp_path: Path) -> None:
    path = write(tmp_path, "1", *(told("a", float(number)) for number in range(100)), kept=5)
    kept = [each.rebalance.began for each in read_history(tmp_path, "g")]
    assert kept == [float(number) for number in range(100 - len(kept), 100)]
    assert 5 <= len(kept) <= 10
    assert len(path.read_text().splitlines()) == len(kept)


def test_histories_of_all_runs_are_read_and_half_a_line_is_not(tmp_path: Path) -> None:
    write(tmp_path, "1", told("a", 2.0), told("a", 3.0, group="other"))
    path = write(tmp_path, "2", told("b", 1.0), told("b", 4.0))
    path.write_text(path.read_text()[:-20])
    assert [(each.member, each.rebalance.began) for each in read_history(tmp_path, "g")] == [("b", 1.0), ("a", 2.0)]
    assert read_history(tmp_path / "nowhere", "g") == []


def test_the_reports_of_one_rebalance_are_merged_and_the_leader_knows_most(tmp_path: Path) -> None:
    voter = RebalanceMember(id="A", static_id=None, rack=None, topics=("t",), votes=None, owned=0, assigned=1)
    write(
        tmp_path,
        "1",
        told("a", 10.0, generation=1, leader="A", members=(voter,), taken=(TP,), taken_at=10.4, reason=JOINED),
        told("a", 20.0, generation=2, leader="A", members=(voter,), given_up=(TP,), given_up_at=20.5,
             reason="left or timed out: C", change=GroupChange(gone=("C",))),
        told("a", 90.0, generation=1, leader="Z"),
    )  # fmt: skip
    write(tmp_path, "2", told("b", 19.9, generation=2, leader="A", taken=(TP,), taken_at=21.0))
    write(tmp_path, "3", told("c", 19.0, member_id="C", reason=LEFT))
    first, leaving, second, recreated = rounds(read_history(tmp_path, "g"))
    assert [each.member for each in first.reported] == ["a"]
    assert [each.member for each in leaving.reported] == ["c"]
    assert [each.member for each in second.reported] == ["b", "a"]
    assert (second.first.member, second.reason, second.began) == ("a", "left: C", 19.9)
    assert [(each.tp, each.owner, each.seconds) for each in second.handovers] == [(TP, "b", 0.5)]
    assert [each.seconds for each in first.handovers] == [None], "the previous owner is unknown"
    assert recreated.began == 90.0, "a recreated group has the same generations"


def native(member: str, began: float, generation: int | None, **known: object) -> Rebalanced:
    known = {f"{what}_at": began for what in ("taken", "given_up", "lost") if what in known} | known
    return told(member, began, membership="native", generation=generation, member_id=f"rdkafka-{member}", **known)  # type: ignore[arg-type]


def test_a_rebalance_of_native_members_is_one_until_what_was_given_up_has_new_owners(tmp_path: Path) -> None:
    # The reports of two members with cooperative-sticky: the second one joins, gets its share, and leaves.
    both = (TP, ("t", 1))
    write(
        tmp_path,
        "1",
        native("a", 10.0, 1, taken=both, reason=JOINED),
        native("a", 20.1, 2, given_up=(TP,), given_up_at=20.1),
        native("a", 23.2, 3),
        native("a", 42.0, 4, taken=(TP,)),
    )
    write(
        tmp_path,
        "2",
        native("b", 20.0, 2, reason=JOINED),
        native("b", 23.1, 3, taken=(TP,)),
        native("b", 40.0, None, given_up=(TP,), reason=LEFT),
    )
    first, joining, leaving = rounds(read_history(tmp_path, "g"))
    assert (first.reason, first.generations) == (JOINED, (1,))
    assert (joining.reason, joining.generations, len(joining.reported)) == ("joined: rdkafka-b", (2, 3), 4)
    assert [(each.owner, round(each.seconds or 0, 1)) for each in joining.handovers] == [("b", 3.0)]
    assert (leaving.reason, leaving.generations) == ("left: rdkafka-b", (4,))
    assert [(each.owner, each.seconds) for each in leaving.handovers] == [("a", 2.0)]


def test_a_cause_that_a_busy_client_reports_late_does_not_split_a_rebalance(tmp_path: Path) -> None:
    changed = "the client says: Metadata for subscribed topic(s) has changed"
    write(tmp_path, "1", native("a", 10.0, 2, given_up=(TP,)), native("a", 10.1, 3, reason=changed))
    write(tmp_path, "2", native("b", 10.2, 3, taken=(TP,), reason=JOINED))
    (found,) = rounds(read_history(tmp_path, "g"))
    assert (found.generations, found.reason) == ((2, 3), f"joined: rdkafka-b; {changed}")


def test_a_member_that_joins_and_takes_over_partitions_is_a_separate_rebalance(tmp_path: Path) -> None:
    write(tmp_path, "1", native("a", 10.0, None, given_up=(TP,), reason=LEFT))
    write(tmp_path, "2", native("b", 12.0, 2, taken=(TP,), reason=JOINED))
    assert [each.reason for each in rounds(read_history(tmp_path, "g"))] == [LEFT, JOINED]


def test_the_same_generation_an_hour_later_is_that_of_a_group_that_was_created_again(tmp_path: Path) -> None:
    write(tmp_path, "1", native("a", 10.0, 1, taken=(TP,)), native("a", 3_610.0, 1, taken=(TP,)))
    assert [each.began for each in rounds(read_history(tmp_path, "g"))] == [10.0, 3_610.0]
