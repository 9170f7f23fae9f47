"""Which finished works wake the dispatcher, and that none of the others is forgotten."""

import time
from collections import deque
from queue import SimpleQueue
from typing import Any

import pytest
from tests.dispatch_helpers import keyed, make_dispatch

from penstock.app.work import Work
from penstock.core.failures.outcome import DONE, Outcome, Skipped
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.finished_works import FinishedWorks
from penstock.engine.dispatch.thread_messages import Inbox, Worked
from penstock.engine.workers.work_queue import WorkQueue

TP = ("orders", 0)


def started(dispatch: Dispatch) -> Work:
    (runs,) = dispatch.take(0.0, 10)
    return Work(runs, has_dead_letter=False, clock=time.monotonic)


def work_with(*outcomes: Outcome) -> Work:
    """A work of two records, with the outcomes that it has so far."""
    dispatch = make_dispatch()
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a", b"a"))
    work = started(dispatch)
    for run in work.runs():
        run.outcomes.extend(outcomes)
    return work


@pytest.fixture
def inbox() -> Inbox:
    return SimpleQueue()


def test_a_work_that_only_succeeded_wakes_the_dispatcher_only_if_something_waits(inbox: Inbox) -> None:
    finished, work, awaited = FinishedWorks(inbox), work_with(DONE, DONE), work_with(DONE, DONE)
    finished.are_awaited = False
    finished.add(work)
    assert inbox.empty()
    assert finished.take() == [work]
    assert finished.take() == []
    finished.are_awaited = True
    finished.add(awaited)
    assert inbox.get_nowait() == Worked(awaited)


@pytest.mark.parametrize("outcomes", [(DONE, Skipped("why")), (DONE,)], ids=["another outcome", "not attempted"])
def test_a_work_with_more_to_decide_always_wakes_the_dispatcher(inbox: Inbox, outcomes: tuple[Outcome, ...]) -> None:
    finished, work = FinishedWorks(inbox), work_with(*outcomes)
    finished.are_awaited = False
    finished.add(work)
    assert inbox.get_nowait() == Worked(work)


@pytest.mark.parametrize("has_looked", [False, True])
def test_a_work_that_ends_while_the_dispatcher_begins_to_wait_is_reported_once(
    inbox: Inbox,
    has_looked: bool,  # noqa: FBT001
) -> None:
    finished, work = FinishedWorks(inbox), work_with(DONE, DONE)
    finished.are_awaited = False
    taken: list[Work] = []

    class Quiet(deque[Work]):
        """The dispatcher's thread runs just after the worker has put its work here."""

        def append(self, item: Work) -> None:
            super().append(item)
            finished.are_awaited = True
            if has_looked:
                taken.extend(finished.take())

    finished._quiet = Quiet()
    finished.add(work)
    messages = [] if inbox.empty() else [inbox.get_nowait()]
    assert (taken, messages) == (([work], []) if has_looked else ([], [Worked(work)]))
    assert not finished.has_any


def test_outcomes_are_awaited_by_records_of_the_same_key_a_revoke_and_a_full_member() -> None:
    dispatch = make_dispatch(order="key", max_in_flight=8)
    assert not dispatch.awaits_outcomes
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, b"a"))
    assert dispatch.awaits_outcomes, "a record was not handed out yet"
    dispatch.take(0.0, 10)
    assert not dispatch.awaits_outcomes
    dispatch.deliver(TP, keyed(TP, b"b", first=1))
    dispatch.take(0.0, 10)
    assert not dispatch.awaits_outcomes, "records of different keys wait for nothing"
    dispatch.deliver(TP, keyed(TP, b"a", first=2))
    dispatch.take(0.0, 10)
    assert dispatch.awaits_outcomes, "the second record of key a waits for the first"


def test_a_revoke_and_a_half_full_member_await_outcomes() -> None:
    revoked, full = (make_dispatch(order="none", max_in_flight=8) for _ in range(2))
    for dispatch, count in ((revoked, 1), (full, 4)):
        dispatch.assign(TP, 0)
        dispatch.deliver(TP, keyed(TP, *[b"a"] * count))
        dispatch.take(0.0, 10)
    assert full.awaits_outcomes
    assert not revoked.awaits_outcomes
    revoked.stop_dispatching([TP])
    assert revoked.awaits_outcomes


def test_a_work_goes_to_the_thread_that_began_to_wait_last() -> None:
    queue = WorkQueue()
    own: list[Any] = [SimpleQueue(), SimpleQueue()]
    queue._waiting.extend(own)
    work, later, last = (work_with() for _ in range(3))
    for each in (work, later, last):
        queue.put(each)
    assert own[1].get_nowait() is work
    assert own[0].get_nowait() is later
    assert queue.get(SimpleQueue()) is last, "no thread waited, so the next one that is free takes it"
