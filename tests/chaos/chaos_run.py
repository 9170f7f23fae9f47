"""One chaos run.

Members of a group join, leave, are killed and frozen while records arrive. Then it checks the history.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from chaos.checker import RULES, Violation, check
from chaos.fleet import Fleet
from chaos.handler_log import read_handler_log
from chaos.history import SETTLED, History
from chaos.traffic import Observer, Writer
from penstock.kafka import Cluster

MEMBERS = 3
_MOST_MEMBERS = 4
_PARTITIONS = 12
# Longer than the session timeout of the app and the time until the broker notices it.
_FREEZE_SECONDS = 8.0
_PAUSE_SECONDS = (1.5, 3.5)
_START_SECONDS = 240.0
_CATCH_UP_SECONDS = 240.0
_TICK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``members`` are the kinds of members, in turns; ``rules`` are the rules that all of them keep.

    ``strategy`` is the assignor of members that do not bring one.
    """

    records: int = 100_000
    seconds: float = 60.0
    seed: int = 0
    members: tuple[str, ...] = ("native",)
    strategy: str = "cooperative-sticky"
    faults: tuple[str, ...] = ("kill", "freeze", "leave", "join")
    rules: frozenset[str] = frozenset(RULES)


def suited(members: tuple[str, ...]) -> dict[str, Any]:
    """The faults and rules for these members.

    A Java member repeats uncommitted records, and is a zombie after a freeze.
    """
    if "java" not in members:
        return {"members": members}
    rules = list(RULES)
    kept = frozenset(rules[: rules.index("nothing committed is repeated")])
    return {"members": members, "faults": ("kill", "leave", "join"), "rules": kept}


@dataclass(frozen=True, slots=True)
class Outcome:
    history: History
    violations: list[Violation]
    figures: dict[str, int | float]


Tell = Callable[[str, int], None]
"""What happens now, and how many records are committed."""


def run_chaos(brokers: str, folder: Path, options: Options, tell: Tell) -> Outcome:
    cluster = Cluster(brokers)
    group, topic = f"chaos-{uuid4().hex[:8]}", f"chaos-{uuid4().hex[:8]}"
    cluster.create_topics([topic], partitions=_PARTITIONS)
    # A broker that has just started may take a moment to list a new topic.
    _wait(lambda: topic in cluster.topics(), _START_SECONDS, "the topic to be known")
    writer = Writer(brokers, topic, records=options.records, seconds=options.seconds)
    observer = Observer(cluster, group, topic)
    environment = {
        "CHAOS_GROUP": group,
        "CHAOS_TOPIC": topic,
        "CHAOS_STRATEGY": options.strategy,
        "PENSTOCK_BROKERS": brokers,
    }
    with _fleet(folder, environment, options.members) as fleet:
        for _ in range(MEMBERS):
            fleet.start()
        _wait(lambda: _has_started(fleet), _START_SECONDS, "members to start")
        with writer, observer:
            _wait(lambda: all(each.reported("finished") for each in fleet.awake), _START_SECONDS, "members to work")
            _faults(fleet, options, lambda text: tell(text, observer.total))
            writer.finish()
            tell("catching up", observer.total)
            _catch_up(fleet, observer, lambda: writer.done, lambda: tell("catching up", observer.total))
        tell("stopping", observer.total)
        fleet.stop()
        tell("checking", observer.total)
        history = _history(fleet, writer, observer)
        crashes = [Violation("no process ends unexpectedly", text) for text in fleet.crashed()]
    broken = [violation for violation in check(history) if violation.rule in options.rules]
    return Outcome(history, crashes + broken, _figures(history))


def _has_started(fleet: Fleet) -> bool:
    if crashes := fleet.crashed():
        raise RuntimeError(crashes[0])
    return all(process.has_partitions for process in fleet.awake)


def _faults(fleet: Fleet, options: Options, tell: Callable[[str], None]) -> None:
    """Inject all kinds of faults in turn. The order, the members and the pauses are random."""
    chance = random.Random(options.seed)
    deck: list[str] = []
    untried = {*options.faults}
    deadline = time.monotonic() + options.seconds
    # Each kind happens at least once, even if members on a busy machine own their partitions only after the deadline.
    at_last = deadline + _CATCH_UP_SECONDS
    while time.monotonic() < (at_last if untried else deadline):
        deck = deck or chance.sample(options.faults, len(options.faults))
        if _inflict(deck[-1], fleet, chance):
            untried.discard(deck[-1])
            tell(deck.pop())
        pause = time.monotonic() + chance.uniform(*_PAUSE_SECONDS)
        while time.monotonic() < (pause if untried else min(pause, deadline)):
            tell("faults")
            if fleet.thaw(now=time.time()):
                tell("thawed")
            time.sleep(_TICK_SECONDS)


def _inflict(kind: str, fleet: Fleet, chance: random.Random) -> bool:
    """Inject a fault; False if it must wait.

    It hits only members with partitions, and one of these must continue.
    """
    working = [process for process in fleet.awake if process.has_partitions]
    while len(fleet.awake) < MEMBERS - (1 if fleet.has_frozen else 0):
        fleet.join()
    if kind == "join":
        if len(fleet.awake) < _MOST_MEMBERS:
            fleet.join()
        return True
    if len(working) <= 1 or (kind == "freeze" and fleet.has_frozen):
        return False
    victim = chance.choice(working)
    if kind == "kill":
        fleet.kill(victim)
    elif kind == "leave":
        fleet.leave(victim)
    else:
        fleet.freeze(victim, _FREEZE_SECONDS)
    return True


def _catch_up(fleet: Fleet, observer: Observer, written: Callable[[], bool], tell: Callable[[], None]) -> None:
    while len(fleet.awake) < MEMBERS:
        fleet.join()

    def caught_up() -> bool:
        fleet.thaw(now=time.time())
        tell()
        return not fleet.has_frozen and written() and observer.at_the_end()

    _wait(caught_up, _CATCH_UP_SECONDS, "the group to catch up", or_go_on=True)


def _history(fleet: Fleet, writer: Writer, observer: Observer) -> History:
    files, handler_logs = {}, {}
    for process in fleet.processes:
        files[process.name] = process.reported()
        if process.handler_log_file.exists():
            with process.handler_log_file.open(errors="replace", newline="\n") as lines:
                handler_logs[process.name] = read_handler_log(lines)
    return History(
        files=files,
        produced=writer.produced,
        ends=observer.ends(),
        committed=observer.committed(),
        faults=fleet.faults,
        observed=observer.seen,
        handler_logs=handler_logs,
    )


def _figures(history: History) -> dict[str, int | float]:
    settled = Counter(entry.record for entry in history.by_time if entry.kind in SETTLED)
    kinds = Counter(entry.kind for entry in history.by_time)
    faults = Counter(fault.kind for fault in history.faults)
    first = {entry.record: entry.ts for entry in reversed(history.by_time) if entry.kind in SETTLED}
    begun = [fault.ts for fault in history.faults]
    return {
        "records": len(history.produced),
        "finished": len(settled),
        "finished again": sum(settled.values()) - len(settled),
        "dispatched": kinds["dispatched"],
        "commits": kinds["committed"],
        "commits refused": kinds["commit_failed"],
        "epochs": len(history.epochs),
        "epochs lost": kinds["lost"],
        **{f"{kind}s": faults[kind] for kind in ("kill", "freeze", "leave", "join")},
        "finished after the last fault began": sum(ts > max(begun, default=0.0) for ts in first.values()),
    }


@contextmanager
def _fleet(folder: Path, environment: dict[str, str], kinds: tuple[str, ...]) -> Iterator[Fleet]:
    fleet = Fleet(folder, environment, kinds)
    try:
        yield fleet
    finally:
        fleet.close()


def _wait(condition: Callable[[], bool], seconds: float, what: str, *, or_go_on: bool = False) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            if or_go_on:  # the checker says what is missing
                return
            raise TimeoutError(f"still waiting after {seconds:g} s for {what}")
        time.sleep(_TICK_SECONDS)
