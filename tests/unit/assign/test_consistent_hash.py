"""How few partitions move with consistent hashing."""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings

from penstock.assign import ConsistentHash, Group, Member
from penstock.errors import ConfigError
from penstock.testing.assignor_check import groups

TOPICS = {f"topic-{number}": 50 for number in range(40)}
PARTITIONS = 2_000
GROUPS = 3
NEWCOMERS = 10


def group(names: Iterable[str], **weights: float) -> Group:
    members = [Member(id=name, topics=tuple(TOPICS), weight=weights.get(name, 1.0)) for name in names]
    return Group.of(members, TOPICS)


@pytest.mark.parametrize(("bound", "limit"), [(None, 1.2), (1.25, 3.0)])
def test_one_more_of_a_hundred_members_moves_about_its_share_on_average(bound: float | None, limit: float) -> None:
    assignor, moved, tries = ConsistentHash(bound=bound), 0, 0
    for seed in range(GROUPS):
        random = Random(seed)
        names = [f"consumer-{random.getrandbits(64):x}" for _ in range(100)]
        before = assignor.assign(group(names)).owners()
        for _ in range(NEWCOMERS):
            after = assignor.assign(group([*names, f"consumer-{random.getrandbits(64):x}"])).owners()
            moved += sum(after[tp] != owner for tp, owner in before.items())
            tries += 1
    # And not much fewer: the new member gets its share.
    assert 0.8 * PARTITIONS / 101 <= moved / tries <= limit * PARTITIONS / 101


def test_without_a_bound_nothing_moves_between_those_that_stay() -> None:
    names = [f"consumer-{number}" for number in range(20)]
    before = ConsistentHash(bound=None).assign(group(names)).owners()
    after = ConsistentHash(bound=None).assign(group(names[1:])).owners()
    assert all(after[tp] == owner for tp, owner in before.items() if owner != names[0])


def test_without_a_bound_shares_are_about_even_all_the_same() -> None:
    names = [f"consumer-{number}" for number in range(20)]
    sizes = [len(share) for share in ConsistentHash(bound=None).assign(group(names)).partitions.values()]
    fair = PARTITIONS / 20
    assert 0.6 * fair < min(sizes) <= max(sizes) < 1.5 * fair


@given(groups(alike=True))
@settings(max_examples=50)
def test_no_member_gets_more_than_the_bound(group: Group) -> None:
    total = len(group.topic_partitions())
    weights = sum(member.weight for member in group.members)
    answer = ConsistentHash(bound=1.25).assign(group).partitions
    for member in group.members:
        assert len(answer[member.id]) < 1.25 * total * member.weight / weights + 1


def test_twice_the_weight_gets_about_twice_as_much() -> None:
    names = [f"consumer-{number}" for number in range(10)]
    answer = ConsistentHash(bound=None).assign(group(names, **{names[0]: 2.0})).partitions
    others = sum(len(answer[name]) for name in names[1:]) / 9
    assert 1.5 < len(answer[names[0]]) / others < 2.5


def test_a_static_member_that_comes_back_with_another_id_gets_the_same() -> None:
    def assigned(name: str) -> list[tuple[str, int]]:
        members = [Member(id="other", topics=("t",)), Member(id=name, topics=("t",), static_id="shelf")]
        return list(ConsistentHash().assign(Group.of(members, {"t": 20})).partitions[name])

    assert assigned("first") == assigned("second")


def test_a_bound_below_the_fair_share_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"bound=0\.9"):
        ConsistentHash(bound=0.9)
