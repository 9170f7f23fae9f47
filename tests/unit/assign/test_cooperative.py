"""With the cooperative protocol a partition that moves never has two owners."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.assign import ASSIGNORS, Assignment, CooperativeSticky, Group, Member
from penstock.assign.cooperative import cooperates, withhold

PARTITIONS = 12


@st.composite
def groups(draw: st.DrawFn) -> tuple[Group, Assignment]:
    """Members with disjoint partitions, and any assignment of all of them."""
    names = [f"m{number}" for number in range(draw(st.integers(1, 5)))]
    tps = [("t", number) for number in range(PARTITIONS)]
    owners = [draw(st.sampled_from([*names, None])) for _ in tps]
    targets = [draw(st.sampled_from(names)) for _ in tps]
    members = [
        Member(id=name, topics=("t",), owned=tuple(p for p, owner in zip(tps, owners, strict=True) if owner == name))
        for name in names
    ]
    wanted = {name: [p for p, target in zip(tps, targets, strict=True) if target == name] for name in names}
    return Group.of(members, {"t": PARTITIONS}), Assignment(wanted)


@given(groups())
def test_no_partition_has_two_owners_and_each_has_one_in_the_end(case: tuple[Group, Assignment]) -> None:
    group, wanted = case
    answer = withhold(group, wanted)
    for member in group.members:
        others = {tp for other in group.members if other is not member for tp in other.owned}
        assert not others & set(answer.partitions[member.id])
    settled = answer.settled().partitions
    assert {name: sorted(tps) for name, tps in settled.items()} == wanted.partitions
    moved = Group.of(
        [Member(id=member.id, topics=("t",), owned=tuple(answer.partitions[member.id])) for member in group.members],
        {"t": PARTITIONS},
    )
    assert not withhold(moved, wanted).pending, "one more round is enough"


def test_partitions_that_an_assignor_withholds_stay_withheld() -> None:
    had = tuple(("t", number) for number in range(4))
    group = Group.of([Member(id="a", topics=("t",), owned=had, generation=1), Member(id="b", topics=("t",))], {"t": 4})
    answer = CooperativeSticky().assign(group)
    assert len(answer.pending) == 2
    assert withhold(group, answer) == answer


def test_kafkas_older_assignors_do_not_cooperate_as_their_members_elsewhere_do_not() -> None:
    assert {name for name, each in ASSIGNORS.items() if not cooperates(each)} == {"range", "roundrobin", "sticky"}
