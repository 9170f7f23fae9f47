"""Gives random groups to Penstock's and to Java's assignors, and compares the assignments."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from assignors.cases import Chain, Shape
from assignors.compare import is_odd, is_sound, same, without_invalid_claims
from assignors.group_json import Answer, answers, question
from assignors.reference import ask, java_program
from penstock.assign import Assignor, CooperativeSticky, Group, Range, RoundRobin, Sticky, faults

KAFKAS: tuple[Assignor, ...] = (Range(), RoundRobin(), Sticky(), CooperativeSticky())
_BATCH = 100
_SHAPES = (Shape(), Shape(), Shape(members=4, topics=3, partitions=4), Shape(members=40, topics=12, partitions=20))


@dataclass
class Tally:
    """The numbers of cases by result: as in Java, as in Java without invalid claims, or valid where Java is wrong."""

    cases: int = 0
    same: int = 0
    same_but_for_claims: int = 0
    unsound: int = 0
    swayed: int = 0
    differing: list[str] = field(default_factory=list)


def cases(random: Random, assignor: Assignor) -> Iterator[Group]:
    while True:
        yield from Chain(random, assignor, random.choice(_SHAPES)).groups()


def fuzz(assignor: Assignor, *, count: int, seed: int, orders: int = 1, tell: Callable[[int], None]) -> Tally:
    """Compare both on this many groups. Java also gets the members in ``orders`` other orders."""
    tally = Tally()
    source = cases(Random(seed), assignor)
    with java_program("Assignors") as process:
        while tally.cases < count:
            groups = [next(source) for _ in range(min(_BATCH, count - tally.cases))]
            lines = ask(process, [question(group, [assignor.name], orders) for group in groups])
            for group, line in zip(groups, lines, strict=True):
                _compare(assignor, group, answers(line)[assignor.name], tally, process)
            tell(tally.cases)
    return tally


def _compare(assignor: Assignor, group: Group, java: Answer, tally: Tally, process: "subprocess.Popen[str]") -> None:
    tally.cases += 1
    tally.swayed += java.swayed
    penstocks = assignor.assign(group)
    wrong = faults(group, penstocks)
    if same(penstocks, java):
        tally.same += 1
    elif is_odd(group) and same(penstocks, _ask_without_invalid_claims(assignor, group, process)):
        tally.same_but_for_claims += 1
    elif is_odd(group) and not is_sound(group, java, penstocks):
        tally.unsound += 1
    else:
        wrong.append(f"Java answers {java.partitions}")
    if wrong:
        tally.differing.append(f"{assignor.name} on {group} answers {dict(penstocks.partitions)}: {'; '.join(wrong)}")


def _ask_without_invalid_claims(assignor: Assignor, group: Group, process: "subprocess.Popen[str]") -> Answer:
    (line,) = ask(process, [question(without_invalid_claims(group), [assignor.name], 0)])
    return answers(line)[assignor.name]
