"""How many members each group of this process should have, from what the process measures of its own partitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.core.records.record import TopicPartition
from penstock.core.reports.histogram import Histogram
from penstock.core.scheduling.recommended_members import GroupLoad, RecommendedMembers
from penstock.engine.observe.member_metrics import MemberMetrics
from penstock.ops.group_lag import PartitionLag

GroupHandler = tuple[str, str]


@dataclass
class _Measured:
    """What was measured of one handler at the last look."""

    at: float
    ends: dict[TopicPartition, int]
    records: int
    seconds: float
    service_seconds: float | None = None
    rule: RecommendedMembers = field(default_factory=RecommendedMembers)


class Recommendations:
    """The lag poller's thread calls ``look``; any thread reads ``values``.

    A process knows the arrivals, the lag and the service time of the partitions that it owns, and takes the others to
    be like them. So all processes of a group come to about the same number.
    """

    def __init__(self, member_metrics: Callable[[], list[MemberMetrics]]) -> None:
        self._member_metrics = member_metrics
        self._measured: dict[GroupHandler, _Measured] = {}
        self.values: Mapping[tuple[str, ...], float] = {}

    def look(
        self,
        lags: Mapping[tuple[str, str, int], PartitionLag],
        partitions: Mapping[str, int],
        now: float,
    ) -> None:
        """Take the lags of the owned partitions, and how many partitions each topic has."""
        by_handler: dict[GroupHandler, list[MemberMetrics]] = {}
        for each in self._member_metrics():
            by_handler.setdefault((each.group, each.handler), []).append(each)
        found = {name: self._recommended(name, members, lags, partitions, now) for name, members in by_handler.items()}
        self.values = {name: members for name, members in found.items() if members is not None}

    def _recommended(
        self,
        name: GroupHandler,
        members: list[MemberMetrics],
        lags: Mapping[tuple[str, str, int], PartitionLag],
        partitions: Mapping[str, int],
        now: float,
    ) -> int | None:
        owned = {tp for each in members for tp in each.map_bytes}
        mine = {tp: lags[name[0], *tp] for tp in owned if (name[0], *tp) in lags}
        ends = {tp: each.end for tp, each in mine.items() if each.end is not None}
        handled = [each.watches.handler for each in members]
        records, seconds = sum(sum(each.counts) for each in handled), sum(each.total for each in handled)
        before = self._measured.get(name)
        if before is None:
            self._measured[name] = _Measured(now, ends, records, seconds)
            return None
        service = (seconds - before.seconds) / (records - before.records) if records > before.records else None
        both = ends.keys() & before.ends.keys()
        rate = sum(max(0, ends[tp] - before.ends[tp]) for tp in both) / max(0.001, now - before.at)
        self._measured[name] = now_ = _Measured(
            now, ends, records, seconds, before.service_seconds if service is None else service, before.rule
        )
        if now_.service_seconds is None or not both:
            return before.rule.members
        everything = sum(partitions.get(topic, 0) for topic in {topic for topic, _ in owned})
        scale = max(everything, len(both)) / len(both)
        load = GroupLoad(
            rate_in=rate * scale,
            lag=round(sum(mine[tp].lag or 0 for tp in both) * scale),
            service_seconds=now_.service_seconds,
            concurrency=max(1, sum(each.concurrency for each in members) // len(members)),
            partitions=max(everything, len(both)),
            members=max(1, round(len(members) * scale)),
            one_per_partition=members[0].one_per_partition,
            rebalance_seconds=_mean([each.watches.rebalance for each in members]),
        )
        return now_.rule.observe(load, now)


def _mean(histograms: list[Histogram]) -> float:
    count = sum(sum(each.counts) for each in histograms)
    return sum(each.total for each in histograms) / count if count else 0.0
