"""The rebalances that runs of this machine have been through, each kept in a file beside its run."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from penstock.core.events import Rebalanced
from penstock.core.foreign_text import printable_json
from penstock.core.rebalance import LEFT, Handover, Reason, Rebalance, resolved, without_owner
from penstock.core.settings import redacted_values
from penstock.jvm.folders import open_private

# How many rebalances a run keeps; its file holds at most twice as many.
KEPT = 500
SUFFIX = ".rebalances.jsonl"


@dataclass(frozen=True)
class Told:
    """A rebalance, by the member that tells of it."""

    group: str
    member: str
    rebalance: Rebalance


@dataclass(frozen=True)
class GroupRound:
    """What several members tell of one rebalance; by a generation, or of a member that does not know it, alone."""

    told: tuple[Told, ...]
    handovers: tuple[Handover, ...]
    reason: Reason

    @property
    def first(self) -> Told:
        return _who_knows_most(self.told)

    @property
    def began(self) -> float:
        return min(each.rebalance.began for each in self.told)


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


def read_history(folder: Path, group: str) -> list[Told]:
    """Everything that is kept about this group, in order of time."""
    found = [told for path in folder.glob(f"*{SUFFIX}") for told in _read(path) if told.group == group]
    return sorted(found, key=lambda told: told.rebalance.began)


def _read(path: Path) -> Iterator[Told]:
    with suppress(OSError), path.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # half a line of a killed process
                yield msgspec.json.decode(line, type=Told)


def rounds(history: Iterable[Told]) -> list[GroupRound]:
    """What belongs together, in order of time, with how long each partition that was taken had had no owner."""
    history = list(history)
    left = {told.rebalance.member_id or "" for told in history if told.rebalance.reason == LEFT}
    handovers: defaultdict[tuple[str, float], list[Handover]] = defaultdict(list)
    for each in without_owner(_moves(history)):
        handovers[each.owner, each.at].append(each)
    together: defaultdict[tuple[object, ...], list[Told]] = defaultdict(list)
    for number, each_told in enumerate(history):
        its = each_told.rebalance
        # Generations begin anew with a group that was deleted; its leader does not come back.
        together[("alone", number) if its.generation is None else (its.generation, its.leader)].append(each_told)
    made = [
        GroupRound(
            tuple(same),
            tuple(
                handover
                for told in same
                if told.rebalance.taken_at is not None
                for handover in handovers[told.member, told.rebalance.taken_at]
            ),
            resolved(_who_knows_most(same).rebalance.reason, left),
        )
        for same in together.values()
    ]
    return sorted(made, key=lambda each: each.began)


def _who_knows_most(told: Sequence[Told]) -> Told:
    """The leader, if it is there."""
    return min(told, key=lambda each: (each.rebalance.members is None, each.rebalance.began))


def _moves(history: Iterable[Told]) -> Iterator[tuple[float, str, str, tuple[str, int]]]:
    for told in history:
        its = told.rebalance
        for what, places, at in (
            ("given up", its.given_up, its.given_up_at),
            ("given up", its.lost, its.lost_at),
            ("taken", its.taken, its.taken_at),
        ):
            if at is not None:
                for place in places:
                    yield at, what, told.member, place
