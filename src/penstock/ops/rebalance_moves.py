"""What each rebalance moved: from whom to whom, how long each partition had no owner, and why it moved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import LEFT, Handover
from penstock.ops.rebalance_history import GroupRound

MoveReason = Literal["new", "owner left", "owner lost it", "balance", "exchange", "got back", "on its way"]
"""Why a partition moved.

- new: no member that reports here owned it.
- owner left: its owner left the group.
- owner lost it: the coordinator removed its owner, or the owner could not return it in order.
- balance: its owner has fewer partitions than before.
- exchange: its owner has as many partitions as before, or the leader did not report.
- got back: its owner returned it, and got it again.
- on its way: a member returned it, and no member that reports here has got it yet.
"""

_Departure = tuple[str | None, TopicPartition, float | None]


@dataclass(frozen=True)
class PartitionMove:
    """A partition left ``source`` at ``free_at`` and reached ``target`` at ``taken_at``, in seconds since 1970.

    What no member reported is None.
    """

    tp: TopicPartition
    source: str | None
    target: str | None
    free_at: float | None
    taken_at: float | None
    why: MoveReason

    @property
    def seconds(self) -> float | None:
        """How long the partition had no owner."""
        return None if self.free_at is None or self.taken_at is None else max(0.0, self.taken_at - self.free_at)


def moves_of(rounds: Sequence[GroupRound]) -> list[list[PartitionMove]]:
    """Return the moves of each rebalance of one group. ``rounds`` are all rebalances that are known, oldest first."""
    handovers = {(each.source, each.tp, _free_at(each)): each for round_ in rounds for each in round_.handovers}
    whys: dict[_Departure, MoveReason] = {
        (source, tp, at): reasons.get(source, "exchange")
        for round_ in rounds
        if (reasons := _reasons(round_)) is not None
        for source, tp, at in _returned(round_)
    }
    return [
        sorted(_moves(round_, handovers, whys), key=lambda each: (each.tp, each.free_at or 0.0)) for round_ in rounds
    ]


def _moves(
    round_: GroupRound, handovers: Mapping[_Departure, Handover], whys: Mapping[_Departure, MoveReason]
) -> Iterable[PartitionMove]:
    for each in round_.handovers:
        why = whys.get((each.source, each.tp, _free_at(each)), "new")
        yield _move(each, why)
    own = {(each.source, each.tp) for each in round_.handovers}
    for source, tp, at in _returned(round_):
        if (source, tp) in own:
            continue
        later = handovers.get((source, tp, at))
        why = whys[source, tp, at]
        if later is None:
            yield PartitionMove(tp, source, None, at, None, why if why.startswith("owner") else "on its way")
        else:
            yield _move(later, why)


def _move(each: Handover, why: MoveReason) -> PartitionMove:
    why = "got back" if each.source == each.owner else why
    return PartitionMove(each.tp, each.source, each.owner, _free_at(each), each.at, why)


def _free_at(each: Handover) -> float | None:
    return None if each.seconds is None else round(each.at - each.seconds, 6)


def _returned(round_: GroupRound) -> Iterable[tuple[str, TopicPartition, float | None]]:
    for reported in round_.reported:
        its = reported.rebalance
        for tps, at in ((its.given_up, its.given_up_at), (its.lost, its.lost_at)):
            for tp in tps:
                yield reported.member, tp, None if at is None else round(at, 6)


def _reasons(round_: GroupRound) -> dict[str, MoveReason]:
    """Return why partitions left each member of the round."""
    voters = {voter.id: voter for voter in round_.first.rebalance.members or ()}
    found: dict[str, MoveReason] = {}
    for reported in round_.reported:
        its = reported.rebalance
        voter = voters.get(its.member_id or "")
        if its.reason == LEFT:
            found[reported.member] = "owner left"
        elif its.lost:
            found[reported.member] = "owner lost it"
        elif voter is not None and reported.member not in found:
            found[reported.member] = "balance" if voter.assigned < voter.owned else "exchange"
        elif len(its.given_up) > len(its.taken):
            found.setdefault(reported.member, "balance")
    return found
