"""The rebalances that apps recorded on this machine or reported from others: a list, and one of them in detail."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from penstock.core.reports.rebalance import UNKNOWN, Rebalance, RebalanceMember
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Row, Rows
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.errors import ConfigError
from penstock.ops.rebalance_history import GroupRound, ReportedRebalance, rounds
from penstock.ops.rebalance_moves import PartitionMove, moves_of
from penstock.paths import REBALANCES_SUFFIX, runs_folder

_LATEST = 300
_MOST_MOVES = 5_000


class _History:
    """The rebalances of all machines. They are put together again only when a file or a report is new."""

    def __init__(self, context: DashboardContext, group: str | None) -> None:
        self._context = context
        self._group = group
        self._seen: tuple[list[tuple[str, int, int]], int] | None = None
        self._found: list[tuple[GroupRound, list[PartitionMove]]] = []

    def read(self) -> list[tuple[GroupRound, list[PartitionMove]]]:
        """Return the rebalances with their moves, oldest first."""
        folder = runs_folder()
        files = sorted(_state(path) for path in folder.glob(f"*{REBALANCES_SUFFIX}"))
        state = files, self._context.read_rebalances()
        if state != self._seen:
            self._found = [each for history in self._by_group(folder) for each in _with_moves(history)]
            self._found.sort(key=lambda each: each[0].began)
            self._seen = state
        return self._found

    def _by_group(self, folder: Path) -> Iterable[list[ReportedRebalance]]:
        reported = [each for each in self._context.rebalances_of_all(folder) if self._group in {None, each.group}]
        for _, same in groupby(sorted(reported, key=lambda each: each.group), key=lambda each: each.group):
            yield list(same)


def _state(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return path.name, 0, 0
    return path.name, status.st_mtime_ns, status.st_size


def _with_moves(history: list[ReportedRebalance]) -> Iterable[tuple[GroupRound, list[PartitionMove]]]:
    found = rounds(history)
    return zip(found, moves_of(found), strict=True)


def round_key(each: GroupRound) -> str:
    """Return the key of a rebalance: its group, and when the report of the member that knows most began."""
    return f"{each.first.group} {each.first.rebalance.began:.3f}"


class RebalancesSource:
    """Rows by ``round_key``: the latest rebalances, without their moves."""

    every = 1.0

    def __init__(self, context: DashboardContext, group: str | None) -> None:
        self._history = _History(context, group)

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - they are small
        publish({round_key(each): _summary(each, moves) for each, moves in self._history.read()[-_LATEST:]})

    def close(self) -> None: ...


class RebalanceSource:
    """Rows: ``rebalance``, the phases and voters of one rebalance; ``moves``, its partitions."""

    every = 1.0

    def __init__(self, context: DashboardContext, group: str, key: str) -> None:
        self._history = _History(context, group)
        self._key = key

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - there are two rows
        for each, moves in self._history.read():
            if round_key(each) == self._key:
                publish({**_detail(each), "moves": {"moves": [_move(move) for move in moves[:_MOST_MOVES]]}})
                return
        publish({"gone": {"key": self._key}})

    def close(self) -> None: ...


def _summary(each: GroupRound, moves: list[PartitionMove]) -> Row:
    its = each.first.rebalance
    gaps = [move.seconds for move in moves if move.seconds is not None]
    return {
        "key": round_key(each),
        "group": each.first.group,
        "began": each.began,
        "seconds": round(_ended(each) - each.began, 4),
        "reason": _reason(each),
        "generations": list(each.generations),
        "strategy": its.strategy,
        "members": len({reported.member for reported in each.reported}) if its.members is None else len(its.members),
        "moved": len(moves),
        "gap": max(gaps, default=None),
        "lost": sum(len(reported.rebalance.lost) for reported in each.reported),
    }


def _names(each: GroupRound) -> dict[str | None, str]:
    """Return the names of the members that reported, by their ids."""
    return {reported.rebalance.member_id: reported.member for reported in each.reported if reported.rebalance.member_id}


def _reason(each: GroupRound) -> str | None:
    """Return the reason with short names: member ids consist mostly of random digits."""
    reason = each.reason
    for member_id, name in _names(each).items():
        reason = reason.replace(str(member_id), name)
    return None if reason == UNKNOWN else reason


def _ended(each: GroupRound) -> float:
    return max(reported.rebalance.began + reported.rebalance.seconds for reported in each.reported)


def _detail(each: GroupRound) -> Rows:
    its = each.first.rebalance
    names = _names(each)
    by_member: defaultdict[str, list[Row]] = defaultdict(list)
    for reported in each.reported:
        by_member[reported.member].append(_report(reported.rebalance))
    return {
        "rebalance": {
            "group": each.first.group,
            "began": each.began,
            "ended": _ended(each),
            "reason": _reason(each),
            "generations": list(each.generations),
            "strategy": its.strategy,
            "leader": its.leader,
            "leader_name": names.get(its.leader),
            "coordinator": None if its.coordinator is None else its.coordinator.explained(),
            "voters": None if its.members is None else [_voter(voter, names) for voter in its.members],
            "reports": [{"member": member, "reports": reports} for member, reports in by_member.items()],
            "joined": [] if its.change is None else list(its.change.joined),
            "left": [] if its.change is None else [*its.change.left, *its.change.gone],
        }
    }


def _report(its: Rebalance) -> Row:
    return {
        "id": its.member_id,
        "membership": its.membership,
        "reason": None if its.reason == UNKNOWN else its.reason,
        "began": its.began,
        "seconds": its.seconds,
        "phases": [[phase.name, phase.seconds] for phase in its.phases],
        "revoked": len(its.given_up),
        "revoked_at": its.given_up_at,
        "assigned": len(its.taken),
        "assigned_at": its.taken_at,
        "lost": len(its.lost),
        "lost_at": its.lost_at,
    }


def _voter(voter: RebalanceMember, names: Mapping[str | None, str]) -> Row:
    return {
        "id": voter.id,
        "name": names.get(voter.id),
        "static_id": voter.static_id,
        "rack": voter.rack,
        "votes": None if voter.votes is None else list(voter.votes),
        "owned": voter.owned,
        "assigned": voter.assigned,
    }


def _move(move: PartitionMove) -> Row:
    return {
        "topic": move.tp[0],
        "partition": move.tp[1],
        "source": move.source,
        "target": move.target,
        "free_at": move.free_at,
        "taken_at": move.taken_at,
        "seconds": None if move.seconds is None else round(move.seconds, 4),
        "why": move.why,
    }


def _rebalances(context: DashboardContext, given: Mapping[str, str]) -> RebalancesSource:
    return RebalancesSource(context, given.get("group") or None)


def _rebalance(context: DashboardContext, given: Mapping[str, str]) -> RebalanceSource:
    if not given.get("group") or not given.get("at"):
        raise ConfigError("The rebalance has no group or no time.", hint="Choose one on the page Rebalances.")
    return RebalanceSource(context, given["group"], given["at"])


PAGE = DashboardPage(
    "rebalances",
    "Rebalances",
    icon="rebalances",
    sources={"rebalances": _rebalances, "rebalance": _rebalance},
    has_style=True,
)
