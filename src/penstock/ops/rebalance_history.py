"""The rebalances that runs of this machine have been through, each kept in a file beside its run."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path

import msgspec

from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Rebalanced
from penstock.core.reports.rebalance import (
    JOINED,
    LEFT,
    UNKNOWN,
    Handover,
    Reason,
    Rebalance,
    named,
    resolved,
    without_owner,
)
from penstock.core.settings import redacted_values
from penstock.core.text.foreign_text import printable_json
from penstock.jvm.private_files import open_private
from penstock.paths import REBALANCES_SUFFIX

# How many rebalances a run keeps; its file holds at most twice as many.
KEPT = 500
# What members tell of one rebalance lies no further apart; it is bounded by max.poll.interval.ms, 5 minutes by default.
_NEAR_SECONDS = 600.0
_NATIVE = "native"


@dataclass(frozen=True)
class ReportedRebalance:
    """A rebalance, by the member that tells of it."""

    group: str
    member: str
    rebalance: Rebalance


@dataclass(frozen=True)
class GroupRound:
    """What several members tell of one rebalance.

    It is one generation. Of native members, who cannot tell why the next generation came, it goes on until the
    partitions that were given up have new owners: with cooperative strategies that takes two generations.
    """

    reported: tuple[ReportedRebalance, ...]
    handovers: tuple[Handover, ...]
    reason: Reason

    @property
    def first(self) -> ReportedRebalance:
        return _who_knows_most(self.reported)

    @property
    def began(self) -> float:
        return min(each.rebalance.began for each in self.reported)

    @property
    def generations(self) -> tuple[int, ...]:
        return tuple(sorted({g for each in self.reported if (g := each.rebalance.generation) is not None}))


class HistoryFile:
    """Lines of JSON, as they come; the older ones make room."""

    def __init__(self, path: Path, *, kept: int = KEPT) -> None:
        self._path = path
        self._kept = kept
        self._lines = 0

    def add(self, event: Rebalanced) -> None:
        if self._lines >= 2 * self._kept:
            latest = self._path.read_text(encoding="utf-8").splitlines(keepends=True)[-self._kept :]
            with open_private(self._path, "w") as file:
                file.write("".join(latest))
            self._lines = len(latest)
        line = printable_json(json.dumps(redacted_values(asdict(event)), separators=(",", ":"), ensure_ascii=False))
        with open_private(self._path, "a") as file:
            file.write(line + "\n")
        self._lines += 1


def read_history(folder: Path, group: str) -> list[ReportedRebalance]:
    """Everything that is kept about this group, in order of time."""
    found = [
        reported for path in folder.glob(f"*{REBALANCES_SUFFIX}") for reported in _read(path) if reported.group == group
    ]
    return sorted(found, key=lambda reported: reported.rebalance.began)


def _read(path: Path) -> Iterator[ReportedRebalance]:
    with suppress(OSError), path.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # half a line of a killed process
                yield msgspec.json.decode(line, type=ReportedRebalance)


def rounds(history: Iterable[ReportedRebalance]) -> list[GroupRound]:
    """What belongs together, in order of time, with how long each partition that was taken had had no owner."""
    history = sorted(history, key=lambda reported: reported.rebalance.began)
    left = {reported.rebalance.member_id or "" for reported in history if reported.rebalance.reason == LEFT}
    handovers: defaultdict[tuple[str, float], list[Handover]] = defaultdict(list)
    for each in without_owner(_moves(history)):
        handovers[each.owner, each.at].append(each)
    return [
        GroupRound(
            tuple(same),
            tuple(
                handover
                for reported in same
                if reported.rebalance.taken_at is not None
                for handover in handovers[reported.member, reported.rebalance.taken_at]
            ),
            _reason(same, left),
        )
        for same in _with_what_follows(_by_generation(history))
    ]


def _by_generation(history: Iterable[ReportedRebalance]) -> list[list[ReportedRebalance]]:
    """What members tell of one generation, in order of time; one that does not know its generation is by itself."""
    found: list[list[ReportedRebalance]] = []
    for reported in history:
        near = takewhile(lambda same, now=reported: _is_near(same, now), reversed(found))  # type: ignore[misc]
        same = next((same for same in near if _is_same_generation(same, reported)), None)
        if same is None:
            found.append([reported])
        else:
            same.append(reported)
    return found


def _is_near(earlier: Sequence[ReportedRebalance], reported: ReportedRebalance) -> bool:
    return reported.rebalance.began - earlier[-1].rebalance.began < _NEAR_SECONDS


def _is_same_generation(same: Sequence[ReportedRebalance], reported: ReportedRebalance) -> bool:
    """Generations begin anew with a group that was deleted; its leader, if it is known, does not come back."""
    its, others = reported.rebalance, [each.rebalance for each in same]
    leaders = {each.leader for each in (its, *others)} - {None}
    return its.generation is not None and its.generation == others[0].generation and len(leaders) <= 1


def _with_what_follows(rounds_: Iterable[list[ReportedRebalance]]) -> list[list[ReportedRebalance]]:
    """Puts together generations of native members of which the later one hands on what the earlier one gave up."""
    found: list[list[ReportedRebalance]] = []
    for same in rounds_:
        taken = {tp for reported in same for tp in reported.rebalance.taken}
        before = found[-1] if found and _is_near(found[-1], same[0]) else None
        if (
            before is not None
            and _are_native(before)
            and _are_native(same)
            and taken & _free(before)
            and _no_cause(same)
        ):
            before.extend(same)
        else:
            found.append(same)
    return found


def _are_native(same: Iterable[ReportedRebalance]) -> bool:
    return all(reported.rebalance.membership == _NATIVE for reported in same)


def _no_cause(same: Iterable[ReportedRebalance]) -> bool:
    return all(reported.rebalance.reason == UNKNOWN for reported in same)


def _free(same: Iterable[ReportedRebalance]) -> set[TopicPartition]:
    """What was given up or lost in this round, and not taken since."""
    free: set[TopicPartition] = set()
    for reported in same:
        free |= {*reported.rebalance.given_up, *reported.rebalance.lost}
    return free - {tp for reported in same for tp in reported.rebalance.taken}


def _reason(same: Sequence[ReportedRebalance], left: Collection[str]) -> Reason:
    """The leader's, if it tells one; else what the members tell of themselves."""
    most = _who_knows_most(same).rebalance
    if len(same) == 1 or (most.members is not None and most.reason != UNKNOWN):
        return resolved(most.reason, left)
    by_reason: dict[Reason, set[str]] = {}
    for reported in same:
        by_reason.setdefault(reported.rebalance.reason, set()).add(reported.rebalance.member_id or reported.member)
    parts = [*named("joined", by_reason.pop(JOINED, ())), *named("left", by_reason.pop(LEFT, ()))]
    by_reason.pop(UNKNOWN, None)
    return "; ".join([*parts, *by_reason]) or UNKNOWN


def _who_knows_most(reported: Sequence[ReportedRebalance]) -> ReportedRebalance:
    """The leader, if it is there."""
    return min(reported, key=lambda each: (each.rebalance.members is None, each.rebalance.began))


def _moves(history: Iterable[ReportedRebalance]) -> Iterator[tuple[float, str, str, tuple[str, int]]]:
    for reported in history:
        its = reported.rebalance
        for what, tps, at in (
            ("given up", its.given_up, its.given_up_at),
            ("given up", its.lost, its.lost_at),
            ("taken", its.taken, its.taken_at),
        ):
            if at is not None:
                for tp in tps:
                    yield at, what, reported.member, tp
