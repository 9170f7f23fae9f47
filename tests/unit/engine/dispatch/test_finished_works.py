"""Which finished works wake the dispatcher, and that none of the others is forgotten."""

import time
from collections import deque
from queue import SimpleQueue
from typing import Any

import pytest

from dispatch_helpers import keyed, make_dispatch
from penstock.app.attempts.work import Work
from penstock.core.failures.outcome import DONE, Outcome, Skipped
from penstock.core.scheduling.at_rest import awaits_outcomes
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


def test_outcomes_are_awaited_only_by_records_of_the_same_key() -> None:
    dispatch = make_dispatch(order="key")
    dispatch.assign(TP, 0)
    seen = []
    for offset, key in enumerate([b"a", b"b", b"a"]):
        dispatch.deliver(TP, keyed(TP, key, first=offset))
        dispatch.take(0.0, 10)
        seen.append(awaits_outcomes(dispatch.epochs, dispatch.in_flight))
    assert seen == [False, False, True], "the second record of key a waits for the first"


def awaits_outcomes_of(count: int, *, is_revoked: bool) -> bool:
    """Whether a member with so many records at work, and room for eight, awaits their outcomes."""
    dispatch = make_dispatch(order="none", max_in_flight=8)
    dispatch.assign(TP, 0)
    dispatch.deliver(TP, keyed(TP, *[b"a"] * count))
    dispatch.take(0.0, 10)
    if is_revoked:
        dispatch.stop_dispatching([TP])
    return awaits_outcomes(dispatch.epochs, dispatch.in_flight)


def test_a_revoke_and_a_half_full_member_await_outcomes() -> None:
    assert not awaits_outcomes_of(3, is_revoked=False)
    assert awaits_outcomes_of(3, is_revoked=True)
    assert awaits_outcomes_of(4, is_revoked=False)


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
