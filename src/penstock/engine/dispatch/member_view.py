"""What one member does now, read from the state of its dispatcher: for probes, metrics and the dashboard."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import chain, islice

from penstock.app import Handler, RecordAdapter
from penstock.app.dispatching.running_concurrency import RunningConcurrency
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.fair_schedule import UnorderedLane
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Lane
from penstock.core.text.foreign_text import printable_line
from penstock.core.text.readable_bytes import as_text
from penstock.engine.dispatch.works_in_progress import WorksInProgress
from penstock.engine.observe.health import InProgress
from penstock.engine.observe.member_activity import (
    MemberActivity,
    OwnedPartition,
    RecordAtWork,
    TenantShare,
    WaitingLane,
    WaitingRetry,
)
from penstock.engine.observe.member_metrics import Stopwatches

# A picture for people: more than they can read is left out.
_MOST_AT_WORK = 100
_MOST_LANES = 40
_MOST_RETRIES = 50
_MOST_PARTITIONS = 500
_KEY_CHARACTERS = 80
_MOST_TENANTS = 30
# Reading the tenant of a record costs about a microsecond on the dispatcher's thread.
_MOST_LOOKED_AT = 5_000


@dataclass(frozen=True)
class MemberView:
    """``health`` and ``load`` may be called on any thread, ``activity`` only on the dispatcher's."""

    handler: Handler
    adapter: RecordAdapter
    dispatch: Dispatch
    works: WorksInProgress
    concurrency: RunningConcurrency
    watches: Stopwatches
    clock: Callable[[], float]

    def health(self) -> tuple[float | None, int, tuple[InProgress, ...]]:
        """Seconds since a record was finished, records in flight, the longest in progress."""
        in_flight = sum(epoch.tracker.unfinished for epoch in self.dispatch.epochs)
        return (self.clock() - self.works.finished_at if in_flight else None), in_flight, self.works.longest

    def load(self) -> tuple[int, int, dict[TopicPartition, int]]:
        """Lanes with records, bundles with workers or queued for them, bytes of offset maps."""
        epochs = self.dispatch.epochs
        maps = {epoch.tp: len(known[1]) for epoch in epochs if (known := epoch.committed) is not None}
        return sum(len(epoch.lanes.by_key) for epoch in epochs), self.dispatch.busy, maps

    def activity(self, breaker: str | None) -> MemberActivity:
        now, epochs, counted = self.clock(), self.dispatch.epochs, self.dispatch.in_flight
        in_flight = sum(epoch.tracker.unfinished for epoch in epochs)
        lanes = [lane for epoch in epochs for lane in epoch.lanes.by_key.values()]
        backoffs = self.dispatch.backoffs()
        at_work = self.works.current(now)
        longest = nlargest(_MOST_AT_WORK, at_work, key=lambda each: each[2])
        return MemberActivity(
            handler=self.handler.name,
            group=self.handler.group,
            concurrency=self.concurrency.limit,
            is_auto=self.concurrency.auto is not None,
            busy=len(at_work),
            in_flight=in_flight,
            max_in_flight=counted.limits.max_records,
            bytes=counted.limits.bytes_of(in_flight, counted.excess),
            max_bytes=counted.limits.max_bytes,
            small_bytes=counted.limits.small,
            lanes=len(lanes),
            waiting=sum(len(lane.waiting) for lane in lanes),
            sending=sum(epoch.pending.count for epoch in epochs),
            retrying=len(backoffs),
            oldest_ms=self._oldest_ms(epochs, at_work),
            breaker=breaker,
            at_work=tuple(self._at_work(*each) for each in longest),
            longest_lanes=tuple(
                _waiting_lane(lane) for lane in nlargest(_MOST_LANES, lanes, key=lambda lane: len(lane.waiting))
            ),
            retries=tuple(
                self._retry(at - now, lane)
                for at, lane in nsmallest(_MOST_RETRIES, backoffs, key=lambda each: each[0])
                if lane.waiting
            ),
            tenants=self._tenants(lanes, at_work),
            partitions=tuple(_owned(epoch) for epoch in epochs[:_MOST_PARTITIONS]),
            latency_bounds=self.watches.handler.bounds,
            latency=tuple(self.watches.handler.counts),
        )

    def _tenants(
        self, lanes: Iterable[Lane], at_work: Iterable[tuple[Epoch, AnyRecord, float]]
    ) -> tuple[TenantShare, ...]:
        fairness = self.dispatch.fairness
        if fairness is None or self.handler.fair_by is None:
            return ()
        busy = Counter(fairness.tenant_of(record) for _, record, _ in at_work)
        records = islice(chain.from_iterable(lane.waiting for lane in lanes), _MOST_LOOKED_AT)
        waiting = Counter(map(fairness.tenant_of, records))
        most = nlargest(_MOST_TENANTS, {*busy, *waiting}, key=lambda each: (busy[each] + waiting[each], str(each)))
        return tuple(TenantShare(_tenant(each), fairness.weight_of(each), busy[each], waiting[each]) for each in most)

    def _at_work(self, epoch: Epoch, record: AnyRecord, seconds: float) -> RecordAtWork:
        offset = self.adapter.offset_of(record)
        return RecordAtWork(*epoch.tp, offset, self._key(record), epoch.attempt_at(offset), round(seconds, 3))

    def _retry(self, seconds: float, lane: Lane) -> WaitingRetry:
        record = lane.waiting[0]
        offset = self.adapter.offset_of(record)
        attempt, behind = lane.epoch.attempt_at(offset), len(lane.waiting) - 1
        return WaitingRetry(*lane.epoch.tp, offset, self._key(record), attempt, round(max(0.0, seconds), 3), behind)

    def _key(self, record: AnyRecord) -> str | None:
        key = self.adapter.key_of(record)
        return None if key is None else as_text(key, limit=_KEY_CHARACTERS)

    def _oldest_ms(self, epochs: Iterable[Epoch], at_work: Iterable[tuple[Epoch, AnyRecord, float]]) -> int | None:
        """The earliest timestamp of the first unfinished record of each partition, as far as they are at hand."""
        offset_of = self.adapter.offset_of
        firsts: dict[TopicPartition, AnyRecord] = {}
        for epoch in epochs:
            heads = [lane.waiting[0] for lane in epoch.lanes.by_key.values() if lane.waiting]
            heads += [record for its, record, _ in at_work if its is epoch]
            if heads:
                firsts[epoch.tp] = min(heads, key=offset_of)
        times = [self.adapter.to_record(record, 1).timestamp_ms for record in firsts.values()]
        return min((each for each in times if each >= 0), default=None)


def _waiting_lane(lane: Lane) -> WaitingLane:
    return WaitingLane(*lane.epoch.tp, _name(lane), len(lane.waiting), lane.held)


def _name(lane: Lane) -> str:
    """The key of a lane; a lane that is not of one key is named by what it holds."""
    if isinstance(lane.key, bytes):
        return as_text(lane.key, limit=_KEY_CHARACTERS)
    if isinstance(lane.key, UnorderedLane):
        return f"tenant {_tenant(lane.key.tenant)}"
    if isinstance(lane.key, tuple):
        return f"offset {lane.key[-1]}"
    return "without a key" if lane.key is None else "all keys" if lane.ordered else "without order"


def _tenant(name: Hashable) -> str:
    return (
        as_text(name, limit=_KEY_CHARACTERS)
        if isinstance(name, bytes)
        else printable_line(str(name), limit=_KEY_CHARACTERS)
    )


def _owned(epoch: Epoch) -> OwnedPartition:
    return OwnedPartition(
        *epoch.tp,
        committed=None if epoch.committed is None else epoch.committed[0],
        commit_point=epoch.tracker.commit_point,
        position=epoch.tracker.position,
        in_flight=epoch.tracker.unfinished,
        lanes=len(epoch.lanes.by_key),
        paused=epoch.fetch_state.paused,
    )
