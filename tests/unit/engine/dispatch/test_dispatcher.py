"""How the dispatcher handles the fetcher's messages, without threads or Kafka."""

from dataclasses import replace
from math import inf
from queue import SimpleQueue
from typing import Any

import pytest

from penstock import App, Record, by
from penstock.app import RECORDS, Handler
from penstock.app.attempts.work import Work
from penstock.app.dispatching.reporter import Reporter
from penstock.app.options import CommitMode
from penstock.app.runs.replay_range import ReplayRange
from penstock.core.failures.outcome import DONE, Failed
from penstock.core.failures.retry import Retry
from penstock.core.progress.lease import FOREVER, Lease
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.reports import events
from penstock.engine.dispatch.dispatcher import Dispatcher
from penstock.engine.dispatch.finished_works import FinishedWorks
from penstock.engine.dispatch.thread_messages import (
    AckedBelow,
    Ask,
    Assigned,
    Commit,
    CommitAnswer,
    EngineError,
    Fetched,
    Inbox,
    Lost,
    PartitionState,
    Revoking,
    Seek,
    ToDispatcher,
    Worked,
)
from penstock.engine.membership.catch_up import CatchUp
from penstock.errors import ServerError

TP = ("orders", 0)


class Edges:
    """Fetcher, workers and outbox in one object that only records its calls."""

    is_full = False

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.works: list[Work] = []
        self.has_left = False

    def ask(self, command: Any) -> None:
        self.asked.append(command)

    def leave(self) -> None:
        self.has_left = True

    def submit(self, works: list[Work]) -> None:
        self.works.extend(works)

    def send(self, sends: list[Any]) -> list[Any]:
        assert not sends
        return []


class Bench:
    """A dispatcher with a clock that does not move."""

    def __init__(
        self,
        *,
        until: dict[tuple[str, int], int] | None = None,
        catch_up: CatchUp | None = None,
        commit: CommitMode = "auto",
        replay_range: ReplayRange | None = None,
        fair_by: Any = None,
        lease: Lease = FOREVER,
    ) -> None:
        self.inbox: Inbox = SimpleQueue()
        self.finished_works = FinishedWorks(self.inbox, are_all_awaited=False)
        self.events: list[events.Event] = []
        self.edges = Edges()
        self.now = 0.0
        handler = replace(_handler(commit), replay_range=replay_range)
        if fair_by is not None:
            handler = replace(handler, fair_by=fair_by, order="key")
        reporter = Reporter(handler, self.events.append, member="m", adapter=RECORDS, per_record=False)
        self.dispatcher = Dispatcher(
            handler,
            self.inbox,
            reporter,
            adapter=RECORDS,
            lease=lease,
            until=until,
            catch_up=catch_up,
            clock=lambda: self.now,
            finished_works=self.finished_works,
        )
        edges: Any = self.edges
        self.dispatcher.attach(edges, edges, edges)

    def tell(self, *messages: ToDispatcher) -> None:
        for message in messages:
            self.inbox.put(message)
        self.dispatcher.turn(0)

    def finish(self) -> None:
        """The workers finish their works, and the works that they get afterwards."""
        while self.edges.works:
            work = self.edges.works.pop()
            for run in work.runs():
                run.outcomes.extend([DONE] * len(run.records))
            self.tell(Worked(work))

    def finish_quietly(self) -> None:
        """The workers finish their works, and wake the dispatcher only where something waits for them."""
        self.dispatcher._wait()
        works, self.edges.works = self.edges.works, []
        for work in works:
            for run in work.runs():
                run.outcomes.extend([DONE] * len(run.records))
            self.finished_works.add(work)

    def has_left(self) -> bool:
        """The member leaves when its last commit is answered."""
        for _ in range(3):
            self.tell(*(CommitAnswer(each.commits, {}) for each in self.edges.asked if isinstance(each, Commit)))
        return self.edges.has_left

    def reported(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def _handler(commit: CommitMode) -> Handler:
    app = App("shop")

    @app.consume("orders", commit=commit)
    def handle(value: bytes) -> None: ...

    return app.handlers[0]


def fetched(*offsets: int, end: int | None = None) -> Fetched:
    records = {TP: [Record(*TP, offset, None, b"") for offset in offsets]} if offsets else {}
    return Fetched(records, {} if end is None else {TP: end})


def test_a_gap_at_the_start_of_the_log_is_passed_without_a_new_epoch() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (5, "")}), fetched(5, 6), OutOfRange(TP, 7, low=20, high=30, moved_to=20))
    assert bench.edges.asked == [Seek({TP: 20}, 1)]
    (found,) = bench.reported(events.OffsetOutOfRange)
    assert (found.offset, found.moved_to, found.skipped) == (7, 20, 13)
    bench.finish()
    bench.now = 2.0
    bench.tell()
    assert bench.edges.asked[1:] == [Commit({TP: (20, "")}, 1)]
    assert len(bench.reported(events.Assigned)) == 1


def test_a_recreated_log_gets_a_new_epoch_when_its_old_records_are_finished() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (5, "")}), fetched(5, 6), OutOfRange(TP, 7, low=0, high=3, moved_to=0))
    assert bench.edges.asked == []
    bench.finish()
    assert bench.edges.asked == [Seek({TP: 0}, 1, recreated=True)]
    assert [event.offset for event in bench.reported(events.Assigned)] == [5, 0]
    assert [event.unfinished for event in bench.reported(events.Revoked)] == [0]
    bench.tell(fetched(0, 1, 2))
    bench.finish()
    bench.now = 2.0
    bench.tell()
    assert bench.edges.asked[1:] == [Commit({TP: (3, "")}, 1)]


def test_a_replay_of_a_topic_that_is_recreated_stops_with_an_error() -> None:
    """The new log may have the offsets of the range, with other records."""
    bench = Bench(until={TP: 20}, replay_range=ReplayRange({TP: 20}, 15))
    bench.tell(Assigned({TP: (5, "")}), fetched(5, 6), OutOfRange(TP, 7, low=0, high=3, moved_to=0))
    bench.finish()
    assert "Topic 'orders' was recreated during the replay" in str(bench.dispatcher.error)
    bench.tell(fetched(0, 1))
    assert bench.edges.works == []


def test_a_partition_that_is_lost_before_its_recreated_log_begins_is_forgotten() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (5, "")}), fetched(5), OutOfRange(TP, 6, low=0, high=3, moved_to=0), Lost([TP]))
    bench.finish()
    assert bench.edges.asked == []
    bench.tell(OutOfRange(TP, 6, low=0, high=3, moved_to=0))
    assert bench.edges.asked == []


@pytest.mark.parametrize(
    ("offset", "low", "high", "moved_to", "skipped"),
    [(10, 60, 100, 60, 50), (10, 60, 100, 100, 90), (1_000, 0, 5, 0, 0), (1_000, 2, 5, 5, 3)],
)
def test_skipped_offsets_are_counted(offset: int, low: int, high: int, moved_to: int, skipped: int) -> None:
    assert OutOfRange(TP, offset, low, high, moved_to).skipped == skipped


def test_an_answer_to_a_commit_of_a_partition_that_is_no_longer_owned_is_harmless() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (0, "")}), fetched(0, 1))
    bench.finish()
    bench.now = 2.0
    bench.tell()
    assert bench.edges.asked == [Commit({TP: (2, "")}, 1)]
    answer: SimpleQueue[Any] = SimpleQueue()
    bench.tell(Revoking([TP], answer))
    assert answer.get_nowait() == {TP: (2, "")}
    bench.tell(CommitAnswer({TP: (2, "")}, {}), CommitAnswer({("gone", 9): (2, "")}, {("gone", 9): "not yours"}))
    assert [event.offset for event in bench.reported(events.Committed)] == [2]
    bench.tell(Assigned({TP: (2, "")}), fetched(2))
    bench.finish()
    bench.now = 4.0
    bench.tell()
    assert bench.edges.asked[-1] == Commit({TP: (3, "")}, 2)


def test_a_forced_start_ignores_the_committed_offset() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (10, "")}, {TP: 4}, frozenset({TP})), fetched(4, 5))
    (forced,) = bench.reported(events.StartOverridden)
    assert (forced.offset, forced.committed) == (4, 10)
    bench.finish()
    bench.now = 2.0
    bench.tell()
    assert bench.edges.asked == [Commit({TP: (6, "")}, 1)]


def test_a_commit_by_hand_follows_one_that_is_under_way() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (0, "")}), fetched(0))
    bench.finish()
    bench.tell(AckedBelow({TP: 1}), fetched(1))
    bench.finish()
    bench.tell(AckedBelow({TP: 2}))
    assert bench.edges.asked == [Commit({TP: (1, "")}, 1)]
    bench.tell(CommitAnswer({TP: (1, "")}, {}))
    assert bench.edges.asked[1:] == [Commit({TP: (2, "")}, 1)]


def test_a_commit_by_hand_counts_what_its_handler_s_worker_has_not_reported_yet() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (0, "")}), fetched(0, 1))
    (work,) = bench.edges.works
    run = next(work.runs())
    run.outcomes.append(DONE)  # of the first record; the handler of the second asks for a commit
    bench.tell(AckedBelow({TP: 1}))
    assert bench.edges.asked == [Commit({TP: (1, "")}, 1)]


def test_a_commit_after_each_record_that_was_refused_is_tried_again_soon() -> None:
    bench = Bench(commit="record")
    bench.tell(Assigned({TP: (0, "")}), fetched(0))
    bench.finish()
    assert bench.edges.asked == [Commit({TP: (1, "")}, 1)]
    bench.tell(CommitAnswer({TP: (1, "")}, {TP: "a rebalance is in progress"}))
    assert len(bench.edges.asked) == 1, "not at once, as the answer would be the same"
    bench.now = 0.11
    bench.tell()
    assert bench.edges.asked[1:] == [Commit({TP: (1, "")}, 1)]


def test_progress_has_the_owned_partitions() -> None:
    bench, answer = Bench(), SimpleQueue[Any]()
    bench.tell(Assigned({TP: (5, ""), ("orders", 1): None}), fetched(5, 6), Ask(bench.dispatcher.survey, answer))
    assert answer.get_nowait() == {TP: PartitionState(1, 7, 5, 2), ("orders", 1): PartitionState(2, None, None, 0)}


def test_a_commit_past_the_end_does_not_count_as_caught_up_before_the_log_was_fetched() -> None:
    bench = Bench(until={TP: 5})
    bench.tell(Assigned({TP: (1_000, "")}))
    assert not bench.has_left()
    bench.tell(OutOfRange(TP, 1_000, low=0, high=5, moved_to=0))
    bench.tell(fetched(0, 1, 2, 3, 4, end=5))
    assert not bench.has_left()
    bench.finish()
    assert bench.has_left()


def test_members_of_one_process_catch_up_together() -> None:
    catch_up, until = CatchUp(), {TP: 1}
    busy, idle, late = (Bench(until=until, catch_up=catch_up) for _ in range(3))
    busy.tell(Assigned({TP: (0, "")}), fetched(0, end=1))
    idle.tell(Assigned({}))
    assert not idle.has_left(), "it may still get the partitions that the other member revokes"
    busy.finish()
    assert busy.has_left()
    idle.tell()
    assert idle.has_left()
    late.tell()
    assert late.has_left(), "although it never had a partition"


def test_records_that_finished_without_waking_the_dispatcher_are_in_the_next_commit_and_in_the_progress() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (0, "")}), fetched(0))
    bench.finish_quietly()
    assert bench.inbox.empty()
    answer: SimpleQueue[dict[tuple[str, int], PartitionState]] = SimpleQueue()
    bench.tell(Ask(bench.dispatcher.survey, answer))
    assert answer.get_nowait()[TP].in_flight == 0
    bench.now = bench.dispatcher.next_commit - 0.01  # the dispatcher looks at all works now, and not at the commit
    bench.tell(fetched(1))
    bench.finish_quietly()
    bench.now = bench.dispatcher.next_commit
    bench.tell()
    (commit,) = [each for each in bench.edges.asked if isinstance(each, Commit)]
    assert commit.commits[TP][0] == 2


def test_a_record_behind_one_that_finished_without_waking_the_dispatcher_starts_at_once() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (0, "")}), fetched(0))
    bench.finish_quietly()
    bench.tell(fetched(1))
    assert [run.records[0].offset for work in bench.edges.works for run in work.unstarted] == [1]


def test_a_revoke_that_waits_for_a_record_is_answered_as_soon_as_it_is_finished() -> None:
    bench = Bench()
    bench.tell(Assigned({TP: (0, "")}), fetched(0))
    answer: SimpleQueue[Any] = SimpleQueue()
    bench.tell(Revoking([TP], answer))
    bench.finish_quietly()
    bench.dispatcher.turn(0)
    assert answer.get_nowait()[TP][0] == 1


def test_a_retry_that_is_due_wakes_nobody_while_the_lease_is_over() -> None:
    """It must not start then, so the dispatcher would run without a pause until the broker answers."""
    lease = Lease(10.0)
    bench = Bench(lease=lease)
    bench.tell(Assigned({TP: (0, "")}), Fetched({TP: [Record(*TP, 0, None, b"")]}, {}))
    (work,) = bench.edges.works
    for run in work.runs():
        run.outcomes.append(Failed("OSError", "away", retry=Retry(first="1s", jitter=0)))
    bench.tell(Worked(work))
    assert bench.dispatcher.next_due() == 1.0
    lease.until, bench.now = 5.0, 6.0
    bench.tell()
    assert bench.dispatcher.next_due() == inf
    lease.restore(bench.now)
    assert bench.dispatcher.next_due() == 1.0


def test_the_picture_of_a_member_has_what_is_at_work_what_waits_and_what_is_retried() -> None:
    bench = Bench()
    records = [
        Record(*TP, offset, b"anna" if offset < 8 else b"ben", b"", timestamp_ms=1_000 + offset)
        for offset in range(5, 9)
    ]
    bench.tell(Assigned({TP: (5, "")}), Fetched({TP: records}, {}))
    work = bench.edges.works.pop(0)
    runs = work.runs()
    run = next(runs)
    bench.now = 2.0
    seen = bench.dispatcher.view.activity(None)
    assert (seen.in_flight, seen.max_in_flight, seen.oldest_ms) == (
        4,
        bench.dispatcher.view.activity(None).max_in_flight,
        1_005,
    )
    (at_work,) = seen.at_work
    assert (at_work.topic, at_work.partition, at_work.offset, at_work.key, at_work.attempt) == (*TP, 5, "anna", 1)
    assert [(each.in_flight, each.committed, each.position) for each in seen.partitions] == [(4, 5, 9)]

    run.outcomes.append(Failed("ValueError", "no", retry=Retry(first="30s", jitter=0)))
    list(runs)
    bench.tell(Worked(work))
    seen = bench.dispatcher.view.activity("503")
    assert (seen.retrying, seen.busy, seen.breaker) == (1, 0, "503")
    (retry,) = seen.retries
    assert (retry.offset, retry.attempt, retry.seconds) == (5, 2, 30.0)
    assert retry.behind == seen.longest_lanes[0].waiting - 1


def test_the_picture_has_the_tenants_that_take_turns() -> None:
    bench = Bench(fair_by=by.header("tenant"))
    records = [Record(*TP, n, b"k%d" % n, b"", (("tenant", b"acme" if n % 3 else b"ben"),)) for n in range(300)]
    bench.tell(Assigned({TP: (0, "")}), Fetched({TP: records}, {}))
    acme, ben = bench.dispatcher.view.activity(None).tenants
    assert [(acme.name, acme.weight, acme.busy), (ben.name, ben.weight, ben.busy)] == [
        ("acme", 1.0, 0),
        ("ben", 1.0, 0),
    ]
    assert acme.waiting > ben.waiting > 0


def test_an_error_that_the_client_repeats_many_times_a_second_is_reported_once_in_ten_seconds() -> None:
    bench = Bench()
    for attempt in range(300):
        bench.now = attempt / 20
        bench.tell(EngineError(ServerError("No Kafka broker answers at kafka:9092."), fatal=False))
    assert [each.reason for each in bench.reported(events.Error)] == [
        "No Kafka broker answers at kafka:9092. Penstock retries."
    ] * 2
