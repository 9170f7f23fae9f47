"""A bundle of runs while a worker has it: which records the dispatcher may take back, and when."""

from collections.abc import Iterator
from time import monotonic

import pytest

from penstock import Record
from penstock.app.attempts.work import Work
from penstock.core.failures.outcome import DONE, Delayed, Failed, Outcome
from penstock.core.progress.lease import Lease
from penstock.core.progress.tracker import Tracker
from penstock.core.scheduling.lanes import Epoch, Lane, LaneRun, PartitionLanes

FAILURE, POISON = Failed("OSError", "away"), Failed("Reject", "never", final=True)


def make_runs(count: int, *, ordered: bool = True) -> list[LaneRun]:
    epoch = Epoch(("t", 0), 1, Tracker(0), None)
    return [LaneRun(Lane(epoch, n, ordered=ordered), [Record("t", 0, n, None, b"")] * 3) for n in range(count)]


def being_read(
    *, ordered: bool = True, mixed: bool = False
) -> tuple[Work, LaneRun, Iterator[LaneRun], Iterator[Record]]:
    """A run of five records that a worker has begun to read, with what the worker goes through."""
    epoch = Epoch(("t", 0), 1, Tracker(0), None, lanes=PartitionLanes(running=1))
    records = [Record("t", 0, n, None, b"") for n in range(5)]
    work = Work(
        [LaneRun(Lane(epoch, "all", ordered=ordered, mixed=mixed), records)], has_dead_letter=True, clock=monotonic
    )
    worker = work.runs()
    run = next(worker)
    return work, run, worker, work.records(run)


def test_outcomes_can_be_taken_while_the_worker_is_busy_and_each_only_once() -> None:
    (run,) = make_runs(1)
    work = Work([run], has_dead_letter=True, clock=monotonic)
    worker = work.runs()
    assert next(worker) is run
    assert work.collect() == []
    run.outcomes.extend([DONE, DONE])
    assert work.collect() == [(run, [DONE, DONE], False)]
    run.collected = 2  # as the dispatcher notes when it reports them
    assert work.collect() == []
    run.outcomes.append(DONE)
    assert list(worker) == []
    assert work.collect() == [(run, [DONE], True)]
    assert work.collect() == []
    assert work.attempted == 3


def test_a_failure_is_left_until_the_worker_says_that_it_stopped_there() -> None:
    # If the dispatcher took only the retry, the retry would begin while the worker still holds the lane, and the rest
    # of the run would be lost.
    (run,) = make_runs(1)
    work = Work([run], has_dead_letter=True, clock=monotonic)
    worker = work.runs()
    next(worker)
    run.outcomes.extend([DONE, FAILURE])
    assert work.collect() == [(run, [DONE], False)]
    run.collected = 1
    assert list(worker) == []
    assert work.collect() == [(run, [FAILURE], True)]


def test_records_that_the_worker_has_not_begun_can_be_taken_back() -> None:
    one, two, three = make_runs(3)
    work = Work([one, two, three], has_dead_letter=True, clock=monotonic)
    worker = work.runs()
    next(worker)
    assert work.take_back() == [three, two]
    assert work.take_back() == []
    assert list(worker) == []
    assert work.collect() == [(one, [], True)]


@pytest.mark.parametrize(
    ("ordered", "has_dead_letter", "failure", "stops"),
    [
        (True, True, FAILURE, True),  # a retry comes first
        (True, True, POISON, False),  # goes to the dead letters at once, so no record waits for it
        (True, False, POISON, True),  # the app will halt
        (False, True, FAILURE, False),  # without an order, no record waits
    ],
)
def test_a_run_stops_where_the_rest_must_wait_for_a_decision(
    *, ordered: bool, has_dead_letter: bool, failure: Failed, stops: bool
) -> None:
    (run,) = make_runs(1, ordered=ordered)
    assert Work([run], has_dead_letter=has_dead_letter, clock=monotonic).stops_at(run, failure) == stops


def test_without_an_order_a_stuck_worker_loses_the_records_it_has_not_begun() -> None:
    work, run, worker, adapter = being_read(ordered=False)
    records = list(run.records)
    assert [next(adapter), next(adapter)] == records[:2]
    run.outcomes.append(DONE)
    (rest,) = work.take_back()
    assert rest.records == records[2:]
    assert run.records == records[:2]
    assert run.epoch.lanes.running == 2, "the two come back separately"
    assert work.take_back() == []
    run.outcomes.append(DONE)
    assert list(adapter) == [], "runs that were taken back are not begun"
    assert list(worker) == []
    assert work.collect() == [(run, [DONE, DONE], True)]


@pytest.mark.parametrize(
    ("outcomes", "begun", "kept"),
    [
        ([], 1, 1),  # at the first
        ([DONE, DONE], 3, 3),  # at the third
        ([DONE, DONE], 2, 3),  # between the two: it does not begin the third, and returns it with the run
        ([DONE, FAILURE], 2, 2),  # about to report that it stopped at its failure, which it keeps
        ([DONE, POISON], 3, 3),  # that record goes to the dead letters, and no record waits for it
    ],
)
def test_wherever_a_worker_is_caught_each_record_is_its_own_or_taken_back(
    outcomes: list[Outcome], begun: int, kept: int
) -> None:
    work, run, _, adapter = being_read(mixed=True)
    records = list(run.records)
    assert [next(adapter) for _ in range(begun)] == records[:begun]
    run.outcomes.extend(outcomes)
    (rest,) = work.take_back()
    assert list(adapter) == [], "nothing else is begun"
    assert (run.records, rest.records) == (records[:kept], records[kept:])
    assert rest.split_from is run, "the others may have to wait for its last record"


def test_a_run_that_is_done_has_nothing_to_take_back() -> None:
    (run,) = make_runs(1, ordered=False)
    work = Work([run], has_dead_letter=True, clock=monotonic)
    worker = work.runs()
    claims = work.records(next(worker))
    next(claims)  # and the worker stops there, because its partition is being revoked
    assert list(worker) == []
    assert work.take_back() == []
    assert len(run.records) == 3


def test_a_batch_is_all_records_of_all_runs_and_each_gets_its_own_outcome() -> None:
    one, two, revoked = make_runs(3)
    two.lane.epoch = Epoch(("t", 1), 2, Tracker(0), None, failures={1: 2})
    revoked.lane.epoch = Epoch(("t", 2), 3, Tracker(0), None, dispatching=False)
    work = Work([one, two, revoked], has_dead_letter=True, clock=monotonic)
    records, numbers = work.as_batch(lambda record: record.offset, Lease(1))
    assert records == one.records + two.records
    assert numbers == [1, 1, 1, 3, 3, 3]
    work.note_batch([DONE, FAILURE, DONE, DONE, DONE, POISON])
    assert work.collect() == [
        (one, [DONE, FAILURE, DONE], True),
        (two, [DONE, DONE, POISON], True),
        (revoked, [], True),
    ]


@pytest.mark.parametrize("ordered", [True, False])
def test_a_delayed_record_stops_its_run_only_where_records_have_an_order(*, ordered: bool) -> None:
    (run,) = make_runs(1, ordered=ordered)
    work = Work([run], has_dead_letter=True, clock=monotonic)
    assert work.stops_at(run, Delayed(5.0, until=5.0)) == ordered
