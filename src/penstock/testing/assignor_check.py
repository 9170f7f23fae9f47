"""A check for your own assignors: random groups, and what every assignor must hold to."""

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
_PLAIN = 0.3  # how often nothing but names and numbers is known
_ROUNDS = 6  # a cooperative assignor takes two for each move: it revokes first, and assigns in the next


def check_assignor(assignor: Assignor, *, examples: int = 200, settles: bool = True) -> None:
    """Try the assignor on random groups, and raise an AssertionError with the smallest one that it fails on.

    Every answer has to be complete and valid; the same for the same group, in whatever order its members come; and,
    with ``settles``, nothing may move where nothing has changed. Needs ``hypothesis``.
    """
    hypothesis = _hypothesis()

    @hypothesis.settings(max_examples=examples, deadline=None, database=None, derandomize=True)  # type: ignore[untyped-decorator]
    @hypothesis.given(groups())  # type: ignore[untyped-decorator]
    def check(group: Group) -> None:
        answer = assignor.assign(group)
        wrong = faults(group, answer)
        assert not wrong, f"{assignor.name} on {group}: {'; '.join(wrong)}."  # noqa: S101
        turned = assignor.assign(Group(tuple(reversed(group.members)), group.topics))
        assert _sets(turned) == _sets(answer), (  # noqa: S101
            f"{assignor.name} on {group} answers differently when the members come in another order."
        )
        if settles:
            assert_settles(assignor, group)

    check()


def assert_settles(assignor: Assignor, group: Group) -> None:
    """Nothing may move from one generation to the next, after the few that a cooperative assignor needs."""
    answers = [assignor.assign(group)]
    for generation in range(_ROUNDS):
        group = grown_old(group, answers[-1], generation)
        answers.append(assignor.assign(group))
        assert not faults(group, answers[-1])  # noqa: S101
    assert _sets(answers[-1]) == _sets(answers[-2]), (  # noqa: S101
        f"{assignor.name} goes on moving partitions of {group}, where nothing has changed."
    )


def grown_old(group: Group, answer: Assignment, generation: int) -> Group:
    """The group one generation later: each member has what it was given, and knows it."""
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
    """Random groups for hypothesis; ``alike`` if all members are to subscribe to the same topics.

    Hypothesis draws how large they are, which is what it has to make small; a seed of its own says all else.
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
            "check_assignor draws its groups with hypothesis, which is not installed.",
            hint="Run `pip install hypothesis`.",
        ) from error
    return hypothesis
