"""Random histories with many options at once: a breaker that pauses, rates, fair turns, live changes.

Each option has tests of its own. These are about what one does to a record that waits because of another.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from dispatch_helpers import AWAY, BLOCKED, make_dispatch
from dispatch_machine import OUTCOMES, TPS, DispatchMachine
from penstock import Breaker, Record
from penstock.core.failures.outcome import DONE, Outcome, Skipped
from penstock.core.failures.pausing_circuit import PausingCircuit
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.bundle_size import QUICK
from penstock.core.scheduling.effects import Send
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.lanes import LaneRun, Order
from penstock.core.scheduling.rate_limit import RateLimit

BREAKER = Breaker(then="pause", probe="5s", window=50, on=(OSError,))
FAIRNESS = Fairness(tenant_of=lambda record: record.offset % 3, priority_of=lambda record: record.offset % 4 - 1)
RATES = [None, (0.5, 1, False), (0.25, 3, True), (2.0, 2, True)]


class CombinedMachine(DispatchMachine):
    """A worker reports when it began, so that the breaker learns of successes as in the engines."""

    order: Order = "key"
    outcomes = (*OUTCOMES, BLOCKED, AWAY, AWAY, AWAY)

    def __init__(self) -> None:
        super().__init__()
        circuit = self.dispatch._pausing
        assert isinstance(circuit, PausingCircuit)
        self.circuit = circuit
        self.began: dict[int, float] = {}
        self.probes: list[float] = []
        self.rate: RateLimit | None = None
        self.concurrency = 2

    def make(self) -> None:
        self.dispatch = make_dispatch(
            order=self.order,
            retry_topics=[60.0],
            max_in_flight_bytes=40_000,
            fairness=self.fairness,
            breaker=BREAKER,
        )

    @initialize()
    def own_all(self) -> None:
        """Most steps need records."""
        for tp in TPS:
            self.assign(tp)

    # Live changes.

    @rule(tp=st.sampled_from(TPS))
    def pause(self, tp: TopicPartition) -> None:
        self.dispatch.commanded.pause({tp})
        self.paused.add(tp)

    @rule()
    def resume(self) -> None:
        self.dispatch.commanded.resume()
        self.paused.clear()

    @rule(chosen=st.sampled_from(RATES), ahead=st.integers(0, 2))
    def set_rate(self, chosen: tuple[float, int, bool] | None, ahead: int) -> None:
        if chosen is None:
            self.rate = None
        else:
            interval, burst, by_tenant = chosen
            self.rate = RateLimit(interval, burst, _tenant_of if by_tenant else None)
        self.dispatch.set_rate(self.rate)
        self.dispatch.set_concurrency(self.concurrency, ahead)

    @rule(interval=st.sampled_from([0.2, 1.0, 8.0]), burst=st.integers(1, 4))
    def change_rate(self, interval: float, burst: int) -> None:
        if self.rate is not None:
            self.rate.change(interval, burst, self.now)

    @rule(concurrency=st.integers(1, 4))
    def set_concurrency(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.dispatch.set_concurrency(concurrency)

    # Records.

    @precondition(lambda self: self.fetch_at)
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 0.3, 1.1]), reports=st.integers(1, 4))
    def go_on(self, data: st.DataObject, seconds: float, reports: int) -> None:
        """What an engine does all the time."""
        for tp in sorted(self.fetch_at):
            self.fetch_from(tp, 4)
        self.time_passes(seconds)
        self.take(3)
        for _ in range(reports):
            if self.works:
                self.report(data=data, count=data.draw(st.integers(0, 3)))

    @rule()
    def crowd(self) -> None:
        """Nothing more may be in flight, and back-pressure takes back what waits."""
        for tp in sorted(self.fetch_at):
            self.fetch_from(tp, 30)
        self.time_passes(0.3)
        self.time_passes(1.0)

    @rule(size=st.sampled_from([1, 3, 100, QUICK]))
    def take(self, size: int) -> None:
        was_open = self.circuit.is_open
        found = self.dispatch.take(self.now, size)
        for bundle in found:
            for run in bundle:
                self.check_run(run)
            self.began[id(bundle)] = self.now
        self.works.extend(found)
        if was_open:
            assert sum(len(run.records) for bundle in found for run in bundle) <= 1, "a probe is one record"
            assert not found or self.circuit.probe_at == self.now + self.circuit.probe_seconds
        if self.rate is not None:
            assert all(len(run.records) == 1 for bundle in found for run in bundle)

    def note(self, run: LaneRun, outcomes: list[Outcome], *, last: bool) -> None:
        before, was_open = len(self.sends), self.circuit.is_open
        super().note(run, outcomes, last=last)
        if was_open and self.circuit.is_open:
            assert not any(map(_is_withheld, self.sends[before:])), "no dead letter while the breaker is open"
        bundle = next((each for each in self.works if run in each), None)
        done = any(outcome is DONE or isinstance(outcome, Skipped) for outcome in outcomes)
        if done and bundle is not None and id(bundle) in self.began:
            self.circuit.worked(self.began[id(bundle)], self.now)

    @rule()
    def turn(self) -> None:
        """The dispatcher does everything that is due; then it sleeps until something is."""
        for _ in range(5):  # a partition is rewound and held up before it wakes, an emptied lane gives up its call
            self.time_passes(0.0)
            self.take(1)
        due = self.dispatch.next_due()
        assert due is None or due > self.now, "the dispatcher would run without a pause"

    @invariant()
    def bounds_hold(self) -> None:
        in_flight = sum(len(self.unfinished[epoch.tp]) for epoch in self.dispatch.epochs)
        assert self.delivered - self.dispatch.settled == in_flight
        assert in_flight <= 40
        assert self.dispatch.busy == len(self.works)

    @invariant()
    def what_waits_belongs_to_epochs_that_live(self) -> None:
        owned = {id(epoch) for epoch in self.dispatch.epochs}
        assert all(id(lane.epoch) in owned for _, lane in self.dispatch.backoffs())

    def teardown(self) -> None:
        self.circuit.worked(self.now + 1, self.now + 1)  # what the handler calls works again
        self.dispatch.set_concurrency(2)
        super().teardown()


def _tenant_of(record: Record) -> object:
    return record.offset % 3


def _is_withheld(send: Send) -> bool:
    return send.failure == AWAY


class CombinedNoOrder(CombinedMachine):
    order = "none"


class CombinedFair(CombinedMachine):
    fairness = FAIRNESS


class CombinedPartitionOrder(CombinedMachine):
    order = "partition"


TestCombinedKeyOrder = CombinedMachine.TestCase
TestCombinedNoOrder = CombinedNoOrder.TestCase
TestCombinedFair = CombinedFair.TestCase
TestCombinedPartitionOrder = CombinedPartitionOrder.TestCase
TestCombinedKeyOrder.settings = TestCombinedNoOrder.settings = TestCombinedFair.settings = settings(
    max_examples=60, stateful_step_count=60
)
TestCombinedPartitionOrder.settings = TestCombinedKeyOrder.settings
