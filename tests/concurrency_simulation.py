"""A simulated dependency, and rules that look for the best number of calls at once.

``simulate`` runs calls against the dependency, always as many at once as the rule allows, without waiting in real time.
The rules that Penstock does not use are here to compare: ``benchmarks/concurrency_rules.py`` shows how all of them do.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol


class Rule(Protocol):
    limit: int

    def observe(self, calls: int, seconds: float, failed: int, /, *, busy: int, now: float) -> bool: ...


@dataclass
class Dependency:
    """Answers in ``seconds`` up to ``capacity`` at once, and then slower: each call has its share of the capacity.

    ``spread`` is the standard deviation of the logarithm of a call's own length; a call above ``refuses_above`` at
    once fails; ``fails`` is the part of the calls that fail for other reasons.
    """

    seconds: float = 0.010
    capacity: int = 64
    spread: float = 0.0
    refuses_above: float = math.inf
    fails: float = 0.0
    chance: Random = field(default_factory=lambda: Random(1))

    def call(self, at_once: int) -> tuple[float, bool]:
        """How long a call takes that begins while so many run, and whether it succeeds."""
        if at_once > self.refuses_above:
            return self.seconds, False
        own = math.exp(self.chance.gauss(-(self.spread**2) / 2, self.spread)) if self.spread else 1.0
        return self.seconds * own * max(1.0, at_once / self.capacity), self.chance.random() >= self.fails


@dataclass
class Ended:
    at: float
    seconds: float
    ok: bool
    limit: int


def simulate(
    rule: Rule,
    dependency: Dependency,
    *,
    seconds: float,
    changes: dict[float, Callable[[Dependency], None]] | None = None,
    offered: int = 10**9,
) -> list[Ended]:
    """The calls of so many seconds. ``offered`` bounds how many there are to do at once, whatever the limit is."""
    now, number = 0.0, 0
    calls: list[tuple[float, int, float, bool]] = []
    todo = sorted((changes or {}).items())
    ended: list[Ended] = []
    while now < seconds:
        while todo and todo[0][0] <= now:
            todo.pop(0)[1](dependency)
        while len(calls) < min(rule.limit, offered):
            takes, ok = dependency.call(len(calls) + 1)
            number += 1
            # Calls do not begin at the very same moment.
            heapq.heappush(calls, (now + takes * (1 + 0.001 * dependency.chance.random()), number, takes, ok))
        now, _, takes, ok = heapq.heappop(calls)
        ended.append(Ended(now, takes, ok, rule.limit))
        rule.observe(1, takes, 0 if ok else 1, busy=min(len(calls) + 1, offered), now=now)
    return ended


@dataclass
class Fixed:
    limit: int

    def observe(self, *_sample: object, **_when: object) -> bool:
        return False


@dataclass
class Aimd:
    """One more after each window without a failure or a slow call, 10 % less after another: "slow" has to be said."""

    slow: float
    limit: int = 4
    calls: int = 0
    bad: bool = False

    def observe(self, calls: int, seconds: float, failed: int, **_when: object) -> bool:
        self.calls += calls
        self.bad |= bool(failed) or seconds > self.slow
        if self.calls >= self.limit:
            self.limit = max(1, int(self.limit * 0.9)) if self.bad else self.limit + 1
            self.calls, self.bad = 0, False
        return True


@dataclass
class LongTermGradient:
    """The mean of the last calls against a mean over a longer time, with room for a few calls more."""

    limit: int = 4
    exact: float = 4.0
    short: float = 0.0
    long: float = 0.0

    def observe(self, _calls: int, seconds: float, *_failed: object, **_when: object) -> bool:
        self.short += (seconds - self.short) * (0.05 if self.short else 1)
        self.long += (seconds - self.long) * (2 / 601 if self.long else 1)
        if self.long / self.short > 2:
            self.long *= 0.95
        gradient = max(0.5, min(1.0, 1.05 * self.long / self.short))
        wanted = self.exact * gradient + 4
        self.exact = max(1.0, min(256.0, self.exact * 0.99 + wanted * 0.01))
        self.limit = int(self.exact)
        return True


def throughput(ended: list[Ended], start: float, end: float) -> float:
    return sum(1 for each in ended if start <= each.at < end and each.ok) / (end - start)


def p99(ended: list[Ended], start: float, end: float) -> float:
    found = sorted(each.seconds for each in ended if start <= each.at < end)
    return found[int(len(found) * 0.99)]


def halves(dependency: Dependency) -> None:
    dependency.capacity //= 2


def slows(dependency: Dependency) -> None:
    dependency.seconds *= 2
