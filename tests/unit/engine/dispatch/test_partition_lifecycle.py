"""Assigned, revoked and lost partitions, and logs that were truncated or recreated."""

from math import inf
from queue import SimpleQueue
from typing import Any, cast

import pytest

from dispatch_helpers import make_dispatch, records, take
from penstock import App
from penstock.app import RECORDS
from penstock.app.dispatching.reporter import Reporter
from penstock.core.failures.outcome import DONE
from penstock.core.progress.lease import FOREVER
from penstock.core.progress.offset_map import encode
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.scheduling.lanes import LaneRun
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.partition_lifecycle import PartitionLifecycle
from penstock.engine.dispatch.thread_messages import (
    Assigned,
    CommitAnswer,
    Commits,
    Pause,
    Revoking,
    Seek,
    ToFetcher,
)
from penstock.engine.observe.member_metrics import Stopwatches

TP: TopicPartition = ("orders", 0)
OTHER: TopicPartition = ("orders", 1)


class Transactor:
    def __init__(self) -> None:
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1


class Bench:
    """The lifecycle with real rules around it; the test delivers records and says when their handlers return."""

    def __init__(self, *, exactly_once: bool = False) -> None:
        app = App("shop")

        @app.consume("orders")
        def handle(value: bytes) -> None: ...

        (handler,) = app.handlers
        self.events: list[events.Event] = []
        self.asked: list[ToFetcher] = []
        self.sent: list[Commits] = []
        self.transactor = Transactor()
        self.dispatch = make_dispatch(concurrency=10)
        reporter = Reporter(handler, self.events.append, member="m", adapter=RECORDS, per_record=False)
        self.commits = CommitScheduler(
            handler,
            self.dispatch,
            reporter,
            lease=FOREVER,
            watches=Stopwatches(lambda: 0.0),
            clock=lambda: 0.0,
            send_commits=self.sent.append,
        )
        self.lifecycle = PartitionLifecycle(self.dispatch, self.commits, reporter)
        self.lifecycle.attach(self.asked.append, cast("Any", self.transactor) if exactly_once else None)

    def assign(self, *tps: TopicPartition, at: int = 0) -> None:
        self.lifecycle.assigned(Assigned(dict.fromkeys(tps, (at, ""))))

    def start(self, tp: TopicPartition, first: int, count: int) -> LaneRun:
        """A worker has these records."""
        self.dispatch.deliver(tp, records(tp, first, count))
        (run,) = [run for run in take(self.dispatch) if run.epoch.tp == tp]
        return run

    def finish(self, run: LaneRun) -> None:
        self.dispatch.report([(run, [DONE] * len(run.records), True)], now=0.0)

    def revoke(self, *tps: TopicPartition, deadline: float = 30.0) -> "SimpleQueue[Commits]":
        answer: SimpleQueue[Commits] = SimpleQueue()
        self.lifecycle.revoking(Revoking(tps, answer), deadline)
        return answer

    @property
    def owned(self) -> list[TopicPartition]:
        return [epoch.tp for epoch in self.dispatch.epochs]

    def reported(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


# Assigned.


def test_an_epoch_begins_at_the_commit_and_leaves_out_what_its_map_says() -> None:
    bench = Bench()
    bench.lifecycle.assigned(Assigned({TP: (5, encode(5, [(6, 8)]) or "")}))
    assert [record.offset for record in bench.start(TP, 5, 4).records] == [5, 8]
    assert bench.lifecycle.unfetched == {TP}


def test_a_map_that_cannot_be_read_is_reported_and_ignored() -> None:
    bench = Bench()
    bench.lifecycle.assigned(Assigned({TP: (5, "not a map of Penstock")}))
    assert [record.offset for record in bench.start(TP, 5, 3).records] == [5, 6, 7]
    assert len(bench.reported(events.Error)) == 1


@pytest.mark.parametrize(
    ("assigned", "commits"),
    [
        (Assigned({TP: (5, "")}), {}),
        (Assigned({TP: (5, "")}, behind=frozenset({TP})), {TP: (5, "")}),
        (Assigned({TP: (5, "")}, starts={TP: 3}, forced=frozenset({TP})), {TP: (3, "")}),
        (Assigned({TP: None}, starts={TP: 7}), {TP: (7, "")}),
    ],
    ids=["at its commit", "Kafka is behind the store", "from_ overrides the commit", "no commit yet"],
)
def test_a_first_commit_follows_unless_the_broker_has_it(assigned: Assigned, commits: Commits) -> None:
    bench = Bench()
    bench.lifecycle.assigned(assigned)
    assert bench.dispatch.commits() == commits


def test_the_fetcher_learns_how_many_assignments_the_dispatcher_had_taken() -> None:
    """So it can tell whether a pause is about an epoch that is over."""
    bench = Bench()
    bench.assign(TP)
    bench.assign(OTHER)
    bench.lifecycle.stop_fetching([TP])
    assert bench.asked == [Pause({TP: None}, 2)]


# Revoked.


def test_a_revoke_is_answered_with_its_commits_when_its_records_are_drained() -> None:
    bench = Bench()
    bench.assign(TP, OTHER)
    run, other = bench.start(TP, 0, 2), bench.start(OTHER, 0, 3)
    bench.finish(other)
    bench.dispatch.deliver(TP, records(TP, 2, 2))
    answer = bench.revoke(TP)
    bench.lifecycle.answer_revokes(now=1.0)
    assert answer.empty()
    assert bench.owned == [TP, OTHER]
    bench.finish(run)
    assert take(bench.dispatch) == [], "no more records of it start"
    bench.lifecycle.answer_revokes(now=1.0)
    assert answer.get_nowait() == {TP: (2, "")}, "only for the revoked partition"
    assert bench.owned == [OTHER]
    assert [event.partition for event in bench.reported(events.Revoked)] == [0]


def test_at_its_deadline_a_revoke_is_answered_without_what_is_in_progress() -> None:
    bench = Bench()
    bench.assign(TP)
    bench.finish(bench.start(TP, 0, 2))
    stuck = bench.start(TP, 2, 1)
    answer = bench.revoke(TP, deadline=30.0)
    assert bench.lifecycle.next_due() == 30.0
    bench.lifecycle.answer_revokes(now=29.9)
    assert answer.empty()
    bench.lifecycle.answer_revokes(now=30.0)
    assert answer.get_nowait() == {TP: (2, "")}
    assert bench.owned == []
    bench.finish(stuck)
    assert bench.dispatch.commits() == {}, "a late result has no effect"


def test_exactly_once_revokes_wait_for_the_transaction_under_way_and_commit_all_partitions() -> None:
    bench = Bench(exactly_once=True)
    bench.assign(TP, OTHER)
    bench.finish(bench.start(TP, 0, 1))
    bench.commits.commit()
    bench.finish(bench.start(OTHER, 0, 2))
    answer = bench.revoke(TP)
    bench.lifecycle.answer_revokes(now=0.0)
    assert answer.empty(), "transactions do not overlap"
    assert bench.lifecycle.next_due() == inf, "the deadline must not wake the dispatcher again and again"
    bench.commits.answered(CommitAnswer(bench.sent[-1], {}))
    bench.finish(bench.start(OTHER, 2, 1))
    bench.lifecycle.answer_revokes(now=0.0)
    assert bench.sent[1:] == [{OTHER: (3, "")}], "its records are in the same transaction"
    assert answer.get_nowait() == {}


# Lost.


def test_a_lost_partition_is_dropped_at_once_and_nothing_of_it_is_committed() -> None:
    bench = Bench()
    bench.assign(TP, OTHER)
    run = bench.start(TP, 0, 2)
    bench.finish(bench.start(OTHER, 0, 1))
    bench.lifecycle.lost([TP])
    assert bench.owned == [OTHER], "without waiting for the worker"
    bench.finish(run)
    assert bench.dispatch.commits() == {OTHER: (1, "")}
    assert len(bench.reported(events.Lost)) == 1
    assert bench.lifecycle.unfetched == {OTHER}
    assert bench.lifecycle.losses == 1


def test_the_transactor_is_reset_only_when_no_epoch_is_left() -> None:
    bench = Bench(exactly_once=True)
    bench.assign(TP, OTHER)
    before = bench.transactor.resets
    bench.lifecycle.lost([TP])
    assert bench.transactor.resets == before, "the transaction also has records of the other partition"
    bench.lifecycle.lost([OTHER])
    assert bench.transactor.resets == before + 1


# Truncated and recreated logs.


def test_deleted_records_are_skipped_in_the_same_epoch() -> None:
    bench = Bench()
    bench.assign(TP, at=5)
    bench.lifecycle.out_of_range(OutOfRange(TP, 5, low=20, high=30, moved_to=20))
    assert bench.asked == [Seek({TP: 20}, 1)]
    assert bench.dispatch.commits() == {TP: (20, "")}
    assert bench.lifecycle.restart_recreated() == []
    assert [epoch.number for epoch in bench.dispatch.epochs] == [1]


def test_a_recreated_log_begins_a_new_epoch_when_the_old_records_are_finished() -> None:
    bench = Bench()
    bench.assign(TP, at=5)
    run = bench.start(TP, 5, 2)
    found = OutOfRange(TP, 7, low=0, high=3, moved_to=0)
    bench.lifecycle.out_of_range(found)
    assert bench.lifecycle.restart_recreated() == []
    assert bench.asked == []
    bench.finish(run)
    assert bench.lifecycle.restart_recreated() == [found]
    assert bench.asked == [Seek({TP: 0}, 1, recreated=True)]
    assert [epoch.number for epoch in bench.dispatch.epochs] == [2]
    assert bench.dispatch.commits() == {TP: (0, "")}, "the old commit means other records"
    assert bench.lifecycle.restart_recreated() == [], "only once"


def test_a_recreated_log_that_is_lost_first_is_forgotten() -> None:
    bench = Bench()
    bench.assign(TP, at=5)
    bench.lifecycle.out_of_range(OutOfRange(TP, 5, low=0, high=3, moved_to=0))
    bench.lifecycle.lost([TP])
    bench.assign(TP)
    assert bench.lifecycle.restart_recreated() == []
    assert bench.asked == []


def test_out_of_range_is_ignored_while_the_partition_is_rewound_or_not_owned() -> None:
    bench = Bench()
    found = OutOfRange(TP, 5, low=20, high=30, moved_to=20)
    bench.lifecycle.out_of_range(found)
    bench.assign(TP, at=5)
    (epoch,) = bench.dispatch.epochs
    epoch.fetch_state.rewinding = True
    bench.lifecycle.out_of_range(found)
    assert bench.asked == []
    assert bench.dispatch.commits() == {}
