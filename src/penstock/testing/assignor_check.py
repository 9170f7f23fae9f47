"""A check for your own assignors: random groups, and the rules that every assignor must follow."""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.assign import Assignment, Assignor, Group, Member, Topic, faults
from penstock.assign.sticky.user_data import write_sticky
from penstock.core.records.record import TopicPartition
from penstock.errors import SetupError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_RACKS = ("a", "b", "c")
_TOPICS = ("audit", "orders", "payments", "returns")
_IDS = [f"{name}-{number}" for name in ("a", "consumer", "x") for number in (3, 14, 15, 92)]
_MEMBERS = 7
_PARTITIONS = 9
_PLAIN = 0.3  # the share of groups without racks, and of topics without racks and lags
_ROUNDS = 6  # a cooperative assignor needs two for each move: it revokes in one, and assigns in the next


def check_assignor(assignor: Assignor, *, examples: int = 200, settles: bool = True) -> None:
    """Try the assignor on random groups. Raises an AssertionError with the smallest group that it fails on.

    Every assignment must be complete and valid, and must not depend on the order of the members. With ``settles``, no
    partition may move while the group does not change. Needs ``hypothesis``.
    """
    hypothesis = _hypothesis()

    @hypothesis.settings(  # type: ignore[untyped-decorator]
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        # A busy machine is no fault of the assignor.
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    @hypothesis.given(groups())  # type: ignore[untyped-decorator]
    def check(group: Group) -> None:
        answer = assignor.assign(group)
        wrong = faults(group, answer)
        assert not wrong, f"{assignor.name} on {group}: {'; '.join(wrong)}."  # noqa: S101
        turned = assignor.assign(Group(tuple(reversed(group.members)), group.topics))
        assert _sets(turned) == _sets(answer), (  # noqa: S101
            f"{assignor.name} on {group} returns another assignment if the members are in another order."
        )
        if settles:
            assert_settles(assignor, group)

    check()


def assert_settles(assignor: Assignor, group: Group) -> None:
    """No partition may move from one generation to the next, after the few that a cooperative assignor needs."""
    answers = [assignor.assign(group)]
    for generation in range(_ROUNDS):
        group = grown_old(group, answers[-1], generation)
        answers.append(assignor.assign(group))
        assert not faults(group, answers[-1])  # noqa: S101
    assert _sets(answers[-1]) == _sets(answers[-2]), (  # noqa: S101
        f"{assignor.name} keeps moving partitions of {group}, although the group does not change."
    )


def grown_old(group: Group, answer: Assignment, generation: int) -> Group:
    """The group one generation later: each member owns what it was assigned, and says so in its user data."""
    members = tuple(
        replace(
            member,
            owned=tuple(answer.partitions[member.id]),
            generation=generation,
            user_data=write_sticky(answer.partitions[member.id], generation),
        )
        for member in group.members
    )
    return Group(members, group.topics)


def groups(*, alike: bool = False) -> "SearchStrategy[Group]":
    """Random groups for hypothesis; with ``alike``, all members subscribe to the same topics.

    Hypothesis draws only the sizes, so that it can shrink them, and a seed for everything else.
    """
    st = _hypothesis().strategies
    counts = st.lists(st.integers(0, _PARTITIONS), min_size=1, max_size=len(_TOPICS))
    drawn = st.tuples(st.integers(1, _MEMBERS), counts, st.integers(0, 1_000_000))
    return drawn.map(lambda sizes: _group(*sizes, alike=alike))  # type: ignore[no-any-return]


def _group(members: int, counts: list[int], seed: int, *, alike: bool) -> Group:
    random = Random(seed)  # noqa: S311
    topics = {name: _topic(random, count) for name, count in zip(_TOPICS, counts, strict=False)}
    names = random.sample(_IDS, members)
    tps = [(name, number) for name, topic in topics.items() for number in range(topic.partitions)]
    owners = {tp: random.choice([*names, None]) for tp in tps}
    racks = [None] if random.random() < _PLAIN else [*_RACKS, None]

    def member(name: str) -> Member:
        owned = tuple(tp for tp, owner in owners.items() if owner == name)
        generation = random.choice([3, 4])
        return Member(
            id=name,
            topics=tuple(topics) if alike else tuple(random.sample(_TOPICS, random.randint(0, len(_TOPICS)))),
            rack=random.choice(racks),
            owned=owned,
            generation=generation,
            weight=random.choice([0.5, 1.0, 1.0, 2.0]),
            user_data=write_sticky(owned, generation),
        )

    return Group(tuple(member(name) for name in names), topics)


def _topic(random: Random, count: int) -> Topic:
    known = random.random() > _PLAIN
    return Topic(
        count,
        racks=tuple(frozenset(random.sample(_RACKS, random.randint(0, 2))) for _ in range(count)) if known else (),
        lag=tuple(random.choice([0, 5, 10, 1_000]) for _ in range(count)) if known else (),
    )


def _sets(answer: Assignment) -> dict[str, set[TopicPartition]]:
    return {member: set(tps) for member, tps in answer.partitions.items()}


def _hypothesis() -> Any:
    try:
        import hypothesis  # noqa: PLC0415
        import hypothesis.strategies  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(
            "check_assignor needs hypothesis, which is not installed.",
            hint="Run `pip install hypothesis`.",
        ) from error
    return hypothesis
