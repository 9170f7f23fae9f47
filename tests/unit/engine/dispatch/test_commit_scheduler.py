"""When commits are due, and what their answers change."""

from typing import Any

import pytest

from dispatch_helpers import make_dispatch, records, take
from penstock import App
from penstock.app import RECORDS, Handler
from penstock.app.dispatching.reporter import Reporter
from penstock.core.failures.outcome import DONE
from penstock.core.progress.lease import Lease
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.thread_messages import CommitAnswer, Commits
from penstock.engine.observe.member_metrics import Stopwatches

TP: TopicPartition = ("orders", 0)


class Bench:
    """One partition whose records succeed at once, and a clock that the test moves."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.lease = Lease(3.0)
        self.sent: list[Commits] = []
        self.events: list[events.Event] = []
        self.dispatch = make_dispatch()
        self.dispatch.assign(TP, 0)
        self.next = 0
        handler = _handler(**options)

        def clock() -> float:
            return self.now

        self.commits = CommitScheduler(
            handler,
            self.dispatch,
            Reporter(handler, self.events.append, member="m", adapter=RECORDS, per_record=False),
            lease=self.lease,
            watches=Stopwatches(clock),
            clock=clock,
            send_commits=self.sent.append,
        )

    def finish(self, count: int = 1) -> None:
        self.dispatch.deliver(TP, records(TP, self.next, count))
        self.next += count
        for run in take(self.dispatch):
            self.dispatch.report([(run, [DONE] * len(run.records), True)], now=self.now)

    def at(self, now: float) -> list[int]:
        """Let time pass; returns the offsets of all commits so far."""
        self.now = now
        self.commits.commit_if_due(now)
        return [commits[TP][0] for commits in self.sent]

    def answer(self, *, refused: str = "") -> None:
        commits = self.sent[-1]
        self.commits.answered(CommitAnswer(commits, dict.fromkeys(commits, refused) if refused else {}))


def _handler(**options: Any) -> Handler:
    app = App("shop")

    @app.consume("orders", **options)
    def handle(value: bytes) -> None: ...

    return app.handlers[0]


def test_a_commit_is_due_after_commit_every_and_not_before() -> None:
    bench = Bench(commit_every="2s")
    bench.finish()
    assert bench.at(1.9) == []
    assert bench.at(2.0) == [1]


def test_nothing_is_sent_where_the_broker_has_it_all() -> None:
    bench = Bench(commit_every="1s")
    assert bench.at(1.0) == []
    bench.finish()
    assert bench.at(2.0) == [1]
    bench.answer()
    assert bench.at(3.0) == [1]


def test_enough_finished_records_are_committed_before_their_time() -> None:
    bench = Bench(commit_every="1h", commit_after=3)
    bench.finish(2)
    assert bench.at(0.1) == []
    bench.finish(1)
    assert bench.at(0.2) == [3]
    bench.answer()
    bench.finish(2)
    assert bench.at(0.3) == [3], "counted from the last commit"


def test_no_commit_overtakes_the_one_under_way() -> None:
    bench = Bench(commit_every="1s")
    bench.finish()
    assert bench.at(1.0) == [1]
    bench.finish()
    assert bench.at(2.0) == [1], "the first commit has no answer yet"
    bench.answer()
    assert bench.at(3.0) == [1, 2]


def test_a_commit_asked_for_while_one_is_under_way_follows_its_answer() -> None:
    bench = Bench(commit_every="1h")
    bench.finish()
    bench.commits.commit_at_once()
    bench.finish()
    bench.commits.commit_at_once()
    assert bench.at(0.0) == [1]
    bench.answer()
    assert bench.at(0.0) == [1, 2]
    bench.finish()
    bench.answer()
    assert bench.at(0.0) == [1, 2], "only once"


def test_a_refused_commit_is_reported_and_sent_again_when_the_next_is_due() -> None:
    bench = Bench(commit_every="1s")
    bench.finish()
    bench.at(1.0)
    bench.answer(refused="a rebalance is in progress")
    assert [event.reason for event in bench.events if isinstance(event, events.CommitFailed)] == [
        "a rebalance is in progress"
    ]
    assert not any(isinstance(event, events.Committed) for event in bench.events)
    assert bench.at(1.9) == [1]
    assert bench.at(2.0) == [1, 1]


def test_commits_after_each_record_do_not_wait_for_commit_every_when_one_is_refused() -> None:
    bench = Bench(commit="record", commit_every="1h")
    bench.finish()
    assert bench.at(1.0) == [1]
    bench.answer(refused="a rebalance is in progress")
    assert bench.at(1.05) == [1]
    assert bench.at(1.11) == [1, 1]


def test_a_member_that_is_about_to_leave_commits_soon_and_one_that_leaves_not_at_all() -> None:
    bench = Bench(commit_every="1h")
    bench.finish()
    bench.commits.commit_soon()
    assert bench.at(0.0) == [1]
    bench.answer(refused="a rebalance is in progress")
    assert bench.at(0.11) == [1, 1]
    bench.answer()
    bench.commits.close()
    bench.finish()
    assert bench.at(9.0) == [1, 1]


@pytest.mark.parametrize("accepted", [True, False])
def test_the_lease_is_restored_only_by_an_accepted_commit(*, accepted: bool) -> None:
    bench = Bench(commit_every="1h")
    bench.lease.until, bench.now = 3.0, 10.0
    bench.commits.confirm()
    assert bench.at(10.0) == [0], "known offsets are committed again: the answer confirms the membership"
    bench.answer(refused="" if accepted else "unknown member")
    assert bench.lease.until == (13.0 if accepted else 3.0)
    bench.commits.commit()
    assert len(bench.sent) == (1 if accepted else 2), "until it is confirmed, each commit asks again"


def test_an_older_answer_does_not_confirm_the_membership() -> None:
    bench = Bench(commit_every="1h")
    bench.finish()
    bench.commits.commit()
    older = bench.sent[-1]
    bench.finish()
    bench.lease.until, bench.now = 3.0, 10.0
    bench.commits.confirm()
    bench.commits.answered(CommitAnswer(older, {}))
    assert bench.lease.until == 3.0
    bench.answer()
    assert bench.lease.until == 13.0


def test_a_member_that_has_read_nothing_needs_no_confirmation() -> None:
    bench = Bench()
    bench.dispatch.close([TP])
    bench.lease.until, bench.now = 3.0, 10.0
    bench.commits.confirm()
    assert bench.sent == []
    assert bench.lease.until == 13.0


def test_the_answer_to_the_last_commit_of_a_revoke_is_not_that_to_the_commit_under_way() -> None:
    """Otherwise two commits would be under way at once, and a store could save the older one last."""
    bench = Bench(commit_every="1s")
    bench.finish()
    assert bench.at(1.0) == [1]
    bench.commits.answered(CommitAnswer({("orders", 1): (7, "")}, {}, is_last=True))
    bench.finish()
    assert bench.at(2.0) == [1], "the first one is not answered yet"
    bench.answer()
    assert bench.at(3.0) == [1, 2]
