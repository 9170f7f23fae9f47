"""The rebalances that the runs on this machine recorded, each run in a file of its own."""

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
    GroupChange,
    Handover,
    Reason,
    Rebalance,
    without_owner,
)
from penstock.core.settings import redacted_values
from penstock.core.text.foreign_text import printable_json
from penstock.jvm.private_files import open_private
from penstock.paths import REBALANCES_SUFFIX

# A run keeps at least so many rebalances, and at most twice as many.
KEPT = 500
# Reports of one rebalance are closer than this: max.poll.interval.ms, 5 minutes by default, bounds them.
_NEAR_SECONDS = 600.0
_NATIVE = "native"


@dataclass(frozen=True)
class ReportedRebalance:
    """A rebalance, as one member recorded it."""

    group: str
    member: str
    rebalance: Rebalance


@dataclass(frozen=True)
class GroupRound:
    """The reports of several members about one rebalance.

    Usually that is one generation. Native members do not know why a generation began, so for them a round lasts until
    the revoked partitions have new owners: two generations with cooperative assignors.
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
        return _generations(self.reported)


class HistoryFile:
    """Appends rebalances as JSON lines, and removes the oldest when there are too many."""

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
    """Return all recorded rebalances of this group, oldest first."""
    return [reported for reported in read_all_histories(folder) if reported.group == group]


def read_all_histories(folder: Path) -> list[ReportedRebalance]:
    """Return all recorded rebalances of all groups, oldest first."""
    found = [reported for path in folder.glob(f"*{REBALANCES_SUFFIX}") for reported in _read(path)]
    return sorted(found, key=lambda reported: reported.rebalance.began)


def _read(path: Path) -> Iterator[ReportedRebalance]:
    with suppress(OSError), path.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # a killed process may leave half a line
                yield msgspec.json.decode(line, type=ReportedRebalance)


def rounds(history: Iterable[ReportedRebalance]) -> list[GroupRound]:
    """Group the reports by rebalance, oldest first, with how long each reassigned partition had no owner."""
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
    """Group reports by generation, oldest first. A report without a generation gets a group of its own."""
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
    """Compare the leaders too: a recreated group starts its generations again, but with another leader."""
    its, others = reported.rebalance, [each.rebalance for each in same]
    leaders = {each.leader for each in (its, *others)} - {None}
    return its.generation is not None and its.generation == others[0].generation and len(leaders) <= 1


def _with_what_follows(rounds_: Iterable[list[ReportedRebalance]]) -> list[list[ReportedRebalance]]:
    """Merge generations of native members if the later one assigns what the earlier one revoked."""
    found: list[list[ReportedRebalance]] = []
    for same in rounds_:
        taken = {tp for reported in same for tp in reported.rebalance.taken}
        before = found[-1] if found and _is_near(found[-1], same[0]) else None
        if (
            before is not None
            and _are_native(before)
            and _are_native(same)
            and taken & _free(before)
            and (_no_cause(same) or _is_next_generation(before, same))
        ):
            before.extend(same)
        else:
            found.append(same)
    return found


def _generations(same: Iterable[ReportedRebalance]) -> tuple[int, ...]:
    return tuple(sorted({g for each in same if (g := each.rebalance.generation) is not None}))


def _are_native(same: Iterable[ReportedRebalance]) -> bool:
    return all(reported.rebalance.membership == _NATIVE for reported in same)


def _no_cause(same: Iterable[ReportedRebalance]) -> bool:
    return all(reported.rebalance.reason == UNKNOWN for reported in same)


def _is_next_generation(before: Sequence[ReportedRebalance], same: Sequence[ReportedRebalance]) -> bool:
    """A busy client reports the cause late: then the second generation of one rebalance has it."""
    earlier, later = _generations(before), _generations(same)
    return bool(earlier and later) and later[0] == earlier[-1] + 1


def _free(same: Iterable[ReportedRebalance]) -> set[TopicPartition]:
    """Return the partitions that were revoked or lost in this round and not assigned again."""
    free: set[TopicPartition] = set()
    for reported in same:
        free |= {*reported.rebalance.given_up, *reported.rebalance.lost}
    return free - {tp for reported in same for tp in reported.rebalance.taken}


def _reason(same: Sequence[ReportedRebalance], left: Collection[str]) -> Reason:
    """Return the leader's reason, else the reasons that the members gave."""
    most = _who_knows_most(same).rebalance
    if len(same) == 1 or (most.members is not None and most.reason != UNKNOWN):
        return most.reason if most.change is None else most.change.with_known_leavers(left).describe()
    by_reason: dict[Reason, set[str]] = {}
    for reported in same:
        by_reason.setdefault(reported.rebalance.reason, set()).add(reported.rebalance.member_id or reported.member)
    members = GroupChange(joined=tuple(by_reason.pop(JOINED, ())), left=tuple(by_reason.pop(LEFT, ()))).describe()
    by_reason.pop(UNKNOWN, None)
    return "; ".join([*([members] if members != UNKNOWN else []), *by_reason]) or UNKNOWN


def _who_knows_most(reported: Sequence[ReportedRebalance]) -> ReportedRebalance:
    """Return the leader's report if there is one, else the earliest."""
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
