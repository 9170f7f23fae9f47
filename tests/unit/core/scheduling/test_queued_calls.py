"""With a rate, records are queued for busy workers, and no rate is exceeded when workers begin them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch_helpers import make_dispatch
from penstock import Record
from penstock.core.failures.outcome import DONE
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.lanes import LaneRun
from penstock.core.scheduling.rate_limit import RateLimit

TP: TopicPartition = ("orders", 0)
TENANTS = 4
INTERVAL = 0.1


class Pool:
    """Workers that begin works in the order in which they got them, as soon as one of them is free."""

    def __init__(self, workers: int, ahead: int, burst: int, tenant_of: Callable[[Record], Hashable] | None) -> None:
        self.workers, self.now = workers, 0.0
        self.tenant_of = tenant_of or (lambda _record: None)
        self.running: list[LaneRun] = []
        self.queued: list[LaneRun] = []
        self.calls: dict[Hashable, list[float]] = defaultdict(list)
        self.dispatch = make_dispatch(order="none", max_in_flight=10_000)
        self.dispatch.set_rate(RateLimit(INTERVAL, burst, tenant_of))
        self.dispatch.set_concurrency(workers, ahead)
        self.dispatch.assign(TP, 0)
        self.arrived = 0

    def arrive(self, keys: Sequence[int]) -> None:
        records = [Record(*TP, self.arrived + n, b"%d" % key, b"") for n, key in enumerate(keys)]
        self.arrived += len(records)
        self.dispatch.deliver(TP, records)

    def turn(self) -> None:
        for bundle in self.dispatch.take(self.now, 100):
            self.queued += bundle
        self.begin()

    def begin(self) -> None:
        while self.queued and len(self.running) < self.workers:
            run = self.queued.pop(0)
            self.running.append(run)
            self.calls[self.tenant_of(run.records[0])].append(self.now)

    def end(self, count: int) -> None:
        """So many workers end their works, and begin others."""
        for run in self.running[:count]:
            self.dispatch.report([(run, [DONE], True)], self.now)
            self.dispatch.release()
        del self.running[:count]
        self.begin()

    def resize(self, workers: int, ahead: int) -> None:
        self.workers = workers
        self.dispatch.set_concurrency(workers, ahead)
        self.begin()


def by_key(record: Record) -> Hashable:
    return record.key


@dataclass
class Step:
    """Time passes, works end, perhaps the concurrency changes, records arrive, and perhaps the dispatcher looks."""

    seconds: float
    ended: int
    arrived: list[int]
    has_turn: bool
    size: tuple[int, int] | None


_STEPS = st.builds(
    Step,
    seconds=st.sampled_from([0.0, 0.0, 0.001, 0.04, 0.1, 0.3]),
    ended=st.integers(0, 2),
    arrived=st.lists(st.integers(1, TENANTS), max_size=3),
    has_turn=st.booleans(),
    size=st.sampled_from([None] * 7 + [(1, 2), (3, 0), (2, 4)]),
)


@settings(max_examples=200)
@given(st.lists(_STEPS, min_size=10, max_size=40), st.integers(1, 4), st.sampled_from([None, by_key]))
def test_whenever_workers_begin_queued_records_no_rate_is_exceeded(
    steps: list[Step], burst: int, tenant_of: Callable[[Record], Hashable] | None
) -> None:
    pool = Pool(1, 2, burst, tenant_of)
    pool.arrive([1, 1, 2, 1, 1, 1])
    for step in steps:
        pool.now += step.seconds
        pool.end(step.ended)
        if step.size is not None:
            pool.resize(*step.size)
        pool.arrive(step.arrived)
        if step.has_turn:
            pool.turn()
    for times in pool.calls.values():
        for at in times:
            for seconds in (0.05, 0.5, 3.0):
                window = [other for other in times if at <= other < at + seconds - 1e-9]
                assert len(window) < burst + seconds / INTERVAL
    # What is left is handled too, and each turn hands out all that its time allows.
    pool.resize(2, 1)
    for _ in range(10 * (pool.arrived + 5)):
        pool.turn()
        assert len(pool.running) + len(pool.queued) == 3 or (pool.dispatch.next_due() or inf) > pool.now
        pool.end(3)
        pool.now += INTERVAL / 2
    assert sum(map(len, pool.calls.values())) == pool.arrived


@pytest.mark.parametrize("burst", [1, 3])
def test_busy_workers_find_the_next_record_in_their_queue(burst: int) -> None:
    """Four tenants share two workers: each has a record in the queue, although each keeps its rate."""
    pool = Pool(2, 4, burst, by_key)
    pool.arrive([1, 2, 3, 4] * 50)
    pool.turn()
    assert len(pool.queued) == min(4, 4 * burst - 2), "what each tenant has saved up"
    pool.now = 100.0
    pool.turn()
    assert len(pool.queued) == 4
