"""The rate of a running member: its share of the group's rate, and changes while it runs."""

from typing import Any

import pytest

from dispatch_helpers import keyed, make_dispatch, take
from penstock import App, Rate
from penstock.app.record_adapter import RecordAdapter
from penstock.app.reporter import Reporter
from penstock.app.running_rate import RunningRate
from penstock.core.failures.outcome import DONE
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.core.scheduling.bundle_size import QUICK
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.lanes import Order
from penstock.core.scheduling.rate_limit import RateLimit

TPS: list[TopicPartition] = [("orders", number) for number in range(8)]


class Member:
    def __init__(self, rate: Rate | None, owned: int, *, partitions: int = 8, order: Order = "key") -> None:
        app = App("shop")
        app.consume("orders", rate=rate)(lambda value: None)
        self.now = 0.0
        self.partitions = partitions
        self.events: list[Event] = []
        self.dispatch: Dispatch = make_dispatch(order=order, concurrency=1_000, max_in_flight=10_000)
        reporter = Reporter(app.handlers[0], self.events.append, member="m", adapter=RecordAdapter(), per_record=False)
        self.rate = RunningRate(
            app.handlers[0], self.dispatch, reporter, RecordAdapter(),
            partitions=lambda: self.partitions, clock=lambda: self.now,
        )  # fmt: skip
        for tp in TPS[:owned]:
            self.dispatch.assign(tp, 0)
            self.dispatch.deliver(tp, keyed(tp, *(b"%d" % number for number in range(500))))

    def begun(self, seconds: float) -> int:
        """How many calls begin in this time."""
        # Sums of 0.1 are not exact.
        count, end = 0, self.now + seconds - 1e-6
        while True:
            self.rate.look()
            for bundle in self.dispatch.take(self.now, 1):
                count += sum(len(run.records) for run in bundle)
                self.dispatch.release()
            due = self.dispatch.next_due()
            if due is None or due >= end:
                self.now = end + 1e-6
                return count
            self.now = max(self.now, due)


def test_members_divide_a_shared_rate_by_their_partitions() -> None:
    rate = Rate(80, burst=8, shared=True)
    members = [Member(rate, owned) for owned in (4, 3, 1)]
    assert [each.begun(1.0) for each in members] == [43, 32, 10]
    # Later, no burst is left.
    assert [each.begun(10.0) for each in members] == [400, 300, 100]


def test_the_share_follows_rebalances_and_new_partitions() -> None:
    member = Member(Rate(80, burst=1, shared=True), 4)
    assert member.begun(10.0) == 400
    member.dispatch.close(TPS[:3])
    assert member.begun(10.0) == 100
    member.partitions = 16
    assert member.begun(20.0) == 100


@pytest.mark.parametrize("shared", [True, False])
def test_a_member_alone_has_all_of_the_rate(shared: Any) -> None:
    assert Member(Rate(10, burst=1, shared=shared), 8).begun(10.0) == 100


def test_a_rate_changes_while_the_member_runs() -> None:
    member = Member(Rate(10, burst=1), 1)
    assert member.begun(10.0) == 100
    member.rate.set(Rate(1, burst=1))
    assert member.begun(10.0) == 10
    member.rate.set(Rate(2, per="1s", burst=1, by="key"))
    assert member.begun(1.0) == 390, "each of the other keys begins at once"
    assert member.dispatch.waiting_for_rate == 0


def test_when_a_rate_ends_all_that_waits_goes_on() -> None:
    member = Member(Rate(1, per="1h", by="key"), 2)
    assert member.begun(1.0) == 500
    assert member.dispatch.waiting_for_rate == 500, "each key is in both partitions"
    member.rate.set(None)
    assert member.begun(1.0) == 500
    assert member.rate.waiting == 0


def test_a_lane_that_has_waited_is_not_overtaken_by_new_ones() -> None:
    dispatch = make_dispatch(order="key", concurrency=1)
    dispatch.set_rate(RateLimit(1.0, 1, lambda _record: "tenant"))
    dispatch.assign(TPS[0], 0)
    dispatch.deliver(TPS[0], keyed(TPS[0], b"first", b"waits"))
    assert take(dispatch, 0.0)[0].lane.key == b"first"
    assert take(dispatch, 0.5) == []
    dispatch.deliver(TPS[0], keyed(TPS[0], b"new", first=2))
    # It is ready already when the other one wakes up.
    assert [run.lane.key for run in take(dispatch, 1.0)] == [b"waits"]
    assert [run.lane.key for run in take(dispatch, 2.0)] == [b"new"]


def test_a_quick_handler_with_a_rate_keeps_a_lane_for_each_key() -> None:
    dispatch = make_dispatch(order="key", concurrency=5)
    dispatch.set_rate(RateLimit(1.0, 1, lambda record: record.key))
    dispatch.assign(TPS[0], 0)
    dispatch.deliver(TPS[0], keyed(TPS[0], b"a", b"a", b"b"))
    assert [run.lane.key for run in take(dispatch, 0.0, QUICK)] == [b"a", b"b"]


def test_a_quick_handler_that_gets_a_rate_gets_a_lane_for_each_key() -> None:
    dispatch = make_dispatch(order="key", concurrency=5)
    dispatch.assign(TPS[0], 0)
    dispatch.deliver(TPS[0], keyed(TPS[0], b"a", b"b"))
    (run,) = take(dispatch, 0.0, QUICK)
    assert run.lane.mixed
    dispatch.report([(run, [DONE, DONE], True)], 0.0)
    dispatch.deliver(TPS[0], keyed(TPS[0], b"a", b"a", b"b", b"c", first=2))
    dispatch.set_rate(RateLimit(1.0, 1, lambda record: record.key))
    assert [run.lane.key for run in take(dispatch, 0.0, QUICK)] == [b"a", b"b", b"c"]


def test_with_a_rate_no_record_is_queued_for_a_busy_worker() -> None:
    member = Member(Rate(1_000, burst=1_000), 1)
    member.dispatch.set_concurrency(4, 2)
    assert len(member.dispatch.take(0.0, 1)) == 4
    member.rate.set(None)
    member.dispatch.set_concurrency(4, 2)
    assert len(member.dispatch.take(0.0, 1)) == 2


def test_lanes_of_a_lost_partition_wait_no_more() -> None:
    member = Member(Rate(1, per="1h", by="key"), 2)
    assert member.begun(1.0) == 500
    member.dispatch.close([TPS[1]])
    assert member.rate.waiting == 0
    assert member.dispatch.next_due() is None


def test_a_lane_whose_records_are_fetched_again_still_waits_after_another_partition_is_lost() -> None:
    dispatch = make_dispatch(order="key", concurrency=100, max_in_flight=8)
    dispatch.set_rate(RateLimit(1.0, 1, lambda _record: "tenant"))
    epoch, _ = dispatch.assign(TPS[0], 0), dispatch.assign(TPS[1], 0)
    records = keyed(TPS[0], *(b"%d" % number for number in range(8)))
    dispatch.deliver(TPS[0], records)
    runs = take(dispatch, 0.0)
    dispatch.balance(0.0)
    (pause,), _ = dispatch.balance(1.0)
    assert pause.rewind_to is not None
    dispatch.rewound(TPS[0])
    dispatch.close([TPS[1]])
    dispatch.deliver(TPS[0], records[pause.rewind_to :])
    for second in range(1, 9):
        dispatch.report([(run, [DONE], True) for run in runs], float(second))
        runs = take(dispatch, float(second))
    assert epoch.tracker.commit_point == len(records)
