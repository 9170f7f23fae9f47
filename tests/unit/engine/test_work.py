"""A run of records while a worker has it: what the dispatcher may take, and when."""

from penstock import Record
from penstock.core.dispatch import Epoch, Lane, Run
from penstock.core.outcome import DONE, Failed
from penstock.core.tracker import Tracker
from penstock.engine.work import Work

FAILURE, POISON = Failed("OSError", "away"), Failed("Reject", "never", final=True)


def make_work(*, has_dead_letter: bool = True) -> Work:
    epoch = Epoch(("t", 0), 1, Tracker(0), 0)
    return Work(Run(Lane(epoch), [Record("t", 0, n, None, b"") for n in range(5)]), has_dead_letter=has_dead_letter)


def test_outcomes_can_be_taken_while_the_worker_is_busy_and_each_only_once() -> None:
    work = make_work()
    assert work.collect(last=False) == []
    work.add(DONE)
    work.add(DONE)
    assert work.collect(last=False) == [DONE, DONE]
    work.add(DONE)
    assert work.collect(last=True) == [DONE]
    assert work.collect(last=True) == []


def test_a_failure_is_left_until_the_worker_says_that_it_stopped_there() -> None:
    # Taken by itself, the retry would begin while the worker still holds the lane, and the rest of the run be lost.
    work = make_work()
    work.add(DONE)
    assert not work.add(FAILURE)
    assert work.collect(last=False) == [DONE]
    assert work.collect(last=False) == []
    assert work.collect(last=True) == [FAILURE]


def test_a_record_on_its_way_to_the_dead_letters_does_not_stop_the_run() -> None:
    work = make_work()
    assert work.add(POISON)
    assert work.add(DONE)
    assert work.collect(last=False) == [POISON, DONE]


def test_without_a_dead_letter_topic_every_failure_stops_the_run() -> None:
    assert not make_work(has_dead_letter=False).add(POISON)


def test_a_worker_starts_nothing_more_once_its_partition_is_revoked() -> None:
    work = make_work()
    assert work.may_go_on
    work.run.epoch.dispatching = False
    assert not work.may_go_on
