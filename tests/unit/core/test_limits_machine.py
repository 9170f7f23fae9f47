"""Random histories with limits: turns of tenants, priorities and rates."""

from collections import defaultdict
from typing import cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from dispatch_machine import RETRY_PLACE, DispatchMachine
from penstock import Record
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.lanes import LaneRun, Order
from penstock.core.scheduling.rate_limit import RateLimit


class FairMachine(DispatchMachine):
    """Tenants take turns, with priorities, where the offset map has room for few records ahead of the commit point."""

    order: Order = "key"
    fairness = Fairness(
        tenant_of=lambda record: record.offset % 7 % 3,
        priority_of=lambda record: record.offset % 4 - 1,
        weight_of=lambda tenant: {0: 0.5, 1: 1.5}.get(cast("int", tenant), 2.5),
    )

    def check_run(self, run: LaneRun) -> None:
        super().check_run(run)
        assert run.lane.ordered or self.order == "none" or run.records[0].key is None, "a key keeps its order"

    @invariant()
    def offset_maps_stay_small(self) -> None:
        for epoch in self.dispatch.epochs:
            point, ranges = epoch.tracker.commit_point, epoch.tracker.finished_ranges()
            if epoch.tp == RETRY_PLACE:  # records of other groups are gaps, which no rule can prevent
                continue
            # The map of an earlier epoch may be this large.
            ranges = [each for each in ranges if each[1] > epoch.restored_up_to + 1]
            assert point is not None
            assert len(ranges) <= 2 or ranges[-1][1] <= point + 3 + 1


class FairNoOrderMachine(FairMachine):
    order = "none"


TestFairKeyOrder = FairMachine.TestCase
TestFairNoOrder = FairNoOrderMachine.TestCase
TestFairKeyOrder.settings = TestFairNoOrder.settings = settings(max_examples=25, stateful_step_count=60)


class RateMachine(DispatchMachine):
    """Each of three tenants has a rate. Two workers begin what they get in its order; two more works may be queued."""

    order: Order = "key"
    limit, burst = 2, 3
    workers, most_works = 2, 4

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[list[LaneRun]] = []
        self.calls: dict[object, list[float]] = defaultdict(list)
        self.is_late = False
        self.dispatch.set_concurrency(self.workers, self.most_works - self.workers)
        self.dispatch.set_rate(self.rate_limit())

    def rate_limit(self) -> RateLimit:
        return RateLimit(1 / self.limit, self.burst, self.tenant_of)

    @staticmethod
    def tenant_of(record: Record) -> object:
        return record.offset % 3

    @property
    def running(self) -> list[list[LaneRun]]:
        return [each for each in self.works if any(each is begun for begun in self.begun)]

    def works_changed(self) -> None:
        running = self.running
        for work in self.works:
            if len(running) < self.workers and not any(work is each for each in running):
                running.append(work)
                self.check_call(work)
        self.begun = running

    def check_call(self, work: list[LaneRun]) -> None:
        (run,) = work
        (record,) = run.records
        times = self.calls[self.tenant_of(record)]
        times.append(self.now)
        for seconds in (0.001, 1.0, 10.0):
            latest = [at for at in times if at > self.now - seconds]
            assert len(latest) < self.burst + seconds * self.limit, "no tenant exceeds its rate in any window"

    @rule(is_late=st.booleans())
    def dispatcher_is_late(self, *, is_late: bool) -> None:
        """Workers begin queued works, and the dispatcher learns it later."""
        self.is_late = is_late

    @invariant()
    def free_workers_idle_only_if_all_that_is_ready_waits(self) -> None:
        if self.is_late:
            return
        self.works.extend(found := self.dispatch.take(self.now, 1))
        for bundle in found:
            self.check_run(bundle[0])
        self.works_changed()
        due, wakes = self.dispatch.next_due(), [epoch.fetch_state.wake_at for epoch in self.dispatch.epochs]
        late = due is not None and due <= self.now and due not in wakes
        assert found or len(self.works) == self.most_works or not late, "nobody waits for longer than it must"


class RateWithoutOrderMachine(RateMachine):
    order = "none"


class FairRateMachine(RateMachine):
    fairness = FairMachine.fairness


class WholeRateMachine(RateMachine):
    @staticmethod
    def tenant_of(_record: Record) -> object:
        return None

    def rate_limit(self) -> RateLimit:
        return RateLimit(1 / self.limit, self.burst)


TestRate = RateMachine.TestCase
TestRateWithoutOrder = RateWithoutOrderMachine.TestCase
TestWholeRate = WholeRateMachine.TestCase
TestFairRate = FairRateMachine.TestCase
TestRate.settings = TestRateWithoutOrder.settings = TestWholeRate.settings = TestFairRate.settings = settings(
    max_examples=25, stateful_step_count=50
)
