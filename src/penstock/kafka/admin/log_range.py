"""The offsets of a range: what ``--from`` and ``--to`` mean for each partition."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from penstock.app import Start
from penstock.app.pipelines import Span
from penstock.core.records.record import TopicPartition
from penstock.errors import TopicError
from penstock.kafka.admin.cluster import Cluster

Offsets = dict[TopicPartition, int]


def range_offsets(cluster: Cluster, tps: Sequence[TopicPartition], span: Span, *, what: str) -> tuple[Offsets, Offsets]:
    """Return the first offset of the range and the offset after it, for each of these partitions.

    ``what`` names the handler or pipeline in errors.
    """
    lows, highs = cluster.start_offsets(tps), cluster.end_offsets(tps)

    def offsets(position: Start) -> Offsets:
        return _offsets(position, lows, highs, lambda moment: cluster.offsets_at(tps, moment))

    start, end = offsets(span.start), offsets(span.end)
    for tp in tps:
        _check(tp, start[tp], end[tp], low=lows[tp], high=highs[tp], what=what)
    return start, end


def _offsets(position: Start, lows: Offsets, highs: Offsets, at: Callable[[datetime], Offsets]) -> Offsets:
    if isinstance(position, datetime):
        return at(position)
    if isinstance(position, Mapping):
        return {tp: position[tp] for tp in lows}
    return lows if position == "earliest" else highs


def _check(tp: TopicPartition, first: int, end: int, *, low: int, high: int, what: str) -> None:
    """Refuse offsets that the log does not have: the user would take a part for the whole range."""
    where = f"{tp[0]}[{tp[1]}]"
    if not low <= first <= high or not low <= end <= high:
        raise TopicError(
            f"{where} holds the offsets {low} to {high - 1}, not all of {first} to {end - 1}.",
            hint="Name offsets that the partition has, or use earliest and latest.",
        )
    if first > end:
        raise TopicError(
            f"The range of {what} ends before it begins: {where} from {first} to {end}.",
            hint="Choose a --from that is before --to.",
        )
