"""The rate of a running member: its share of the group's rate, and changes while it runs."""

from typing import Any

import pytest

from dispatch_helpers import keyed, make_dispatch, take
from penstock import App, Rate
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.dispatching.reporter import Reporter
from penstock.app.dispatching.running_rate import RunningRate
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


@pytest.mark.parametrize(
    ("rate", "taken"), [(None, 6), (Rate(5, burst=9), 6), (Rate(5, burst=5), 5), (Rate(5, burst=3), 3)]
)
def test_what_the_rate_allows_is_queued_for_busy_workers(rate: Rate | None, taken: int) -> None:
    member = Member(rate, 1)
    member.dispatch.set_concurrency(4, 2)
    assert len(member.dispatch.take(0.0, 1)) == taken


@pytest.mark.parametrize("by", [None, "key", lambda _record: "tenant"])
def test_a_queued_record_counts_when_its_worker_begins_it(by: Any) -> None:
    member = Member(Rate(1, burst=1, by=by), 0)
    dispatch = member.dispatch
    dispatch.set_concurrency(1, 1)
    for tp in TPS:  # a lane for each record
        dispatch.assign(tp, 0)
        dispatch.deliver(tp, keyed(tp, b"key"))
    begun = [dispatch.take(at, 1) for at in (0.0, 1.0, 2.0)]
    assert [len(each) for each in begun] == [1, 1, 0], "the second is queued"
    assert dispatch.next_due() is None, "until the worker begins it, nothing changes"
    dispatch.release()
    assert dispatch.take(5.0, 1) == [], "the second begins now"
    dispatch.release()
    assert dispatch.take(5.9, 1) == []
    assert len(dispatch.take(6.0, 1)) == 1


@pytest.mark.parametrize("by", [None, "key"])
def test_records_behind_queued_ones_wait_for_a_worker_and_not_for_their_rate(by: Any) -> None:
    member = Member(Rate(1_000, burst=1, by=by), 0)
    dispatch = member.dispatch
    dispatch.set_concurrency(1, 4)
    for tp in TPS:
        dispatch.assign(tp, 0)
        dispatch.deliver(tp, keyed(tp, b"key"))
    dispatch.take(0.0, 1)
    dispatch.take(1.0, 1)
    dispatch.take_most_waiting_for_rate()
    dispatch.take(2.0, 1)
    assert dispatch.busy == 2
    assert dispatch.take_most_waiting_for_rate() == 0
    # The worker begins the queued one and ends it at once, so it is free.
    dispatch.release()
    dispatch.release()
    dispatch.take(3.0, 1)
    assert dispatch.take_most_waiting_for_rate() == 6


def test_a_worker_that_was_taken_away_begins_nothing() -> None:
    dispatch = make_dispatch(order="none", concurrency=4, max_in_flight=100)
    dispatch.set_rate(RateLimit(1.0, 6))
    dispatch.set_concurrency(4, 1)
    dispatch.assign(TPS[0], 0)
    dispatch.deliver(TPS[0], keyed(TPS[0], *[b"k"] * 50))
    assert len(dispatch.take(0.0, 1)) == 5
    dispatch.set_concurrency(2, 3)
    dispatch.release()
    dispatch.release()
    # Two still run, so the queued one has not begun. It begins at 100, when it counts; five were saved up again.
    assert len(dispatch.take(50.0, 1)) == 2
    for _ in range(3):
        dispatch.release()
    assert len(dispatch.take(100.0, 1)) == 3
    dispatch.set_concurrency(20, 0)
    assert len(dispatch.take(100.0, 1)) == 0


def test_records_that_are_queued_count_for_the_rate_of_other_tenants() -> None:
    member = Member(Rate(1, burst=1), 0)
    dispatch = member.dispatch
    dispatch.set_concurrency(1, 2)
    for tp in TPS:
        dispatch.assign(tp, 0)
        dispatch.deliver(tp, keyed(tp, b"key"))
    dispatch.take(0.0, 1)
    assert len(dispatch.take(1.0, 1)) == 1
    member.rate.set(Rate(1, burst=1, by="key"))
    assert dispatch.take(2.0, 1) == [], "the queued record has this key"
    dispatch.release()
    dispatch.release()
    assert dispatch.take(2.0, 1) == []
    assert len(dispatch.take(3.0, 1)) == 1


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
