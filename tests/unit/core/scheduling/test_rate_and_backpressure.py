"""Lanes that wait for their rate while back-pressure takes their records back: they run when they are fetched again."""

import pytest

from dispatch_helpers import keyed, make_dispatch
from penstock.core.failures.outcome import DONE
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.backpressure import FULL_SECONDS
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.lanes import LaneRun
from penstock.core.scheduling.rate_limit import RateLimit

TP: TopicPartition = ("t", 0)
OTHER: TopicPartition = ("t", 1)


@pytest.fixture
def dispatch() -> Dispatch:
    """One call every 10 seconds. Of four records, each partition may hold two."""
    made = make_dispatch(order="key", max_in_flight=4)
    made.assign(TP, 0)
    made.assign(OTHER, 0)
    made.set_rate(RateLimit(10.0, 1, lambda _record: "all"))
    made.set_concurrency(2)
    made.deliver(TP, keyed(TP, b"a", b"b", b"c", b"d"))
    return made


def offsets(dispatch: Dispatch, now: float) -> list[tuple[int, LaneRun]]:
    return [(record.offset, run) for bundle in dispatch.take(now, 1) for run in bundle for record in run.records]


def finish(dispatch: Dispatch, run: LaneRun, now: float) -> None:
    dispatch.report([(run, [DONE], True)], now=now)
    dispatch.release()


def take_back(dispatch: Dispatch, now: float) -> list[int | None]:
    """All places have been taken for long enough; returns where partitions are rewound to."""
    dispatch.balance(now)
    pauses, _ = dispatch.balance(now + FULL_SECONDS)
    for pause in pauses:
        dispatch.rewound(pause.epoch.tp)
    return [pause.rewind_to for pause in pauses]


def test_a_lane_that_waits_and_is_emptied_runs_the_record_that_is_fetched_again(dispatch: Dispatch) -> None:
    ((first, run),) = offsets(dispatch, 0.0)
    assert first == 0
    assert take_back(dispatch, 0.0) == [2]
    finish(dispatch, run, 1.0)
    ((second, run),) = offsets(dispatch, 10.0)
    assert second == 1
    finish(dispatch, run, 10.0)
    assert offsets(dispatch, 20.0) == [], "the next ones are not fetched again yet"
    dispatch.deliver(TP, keyed(TP, b"c", b"d", first=2))
    assert [offset for offset, _ in offsets(dispatch, 20.0)] == [2]


def test_a_lane_whose_turn_has_come_and_is_emptied_keeps_no_other_from_its_turn(dispatch: Dispatch) -> None:
    ((_, run),) = offsets(dispatch, 0.0)
    dispatch.set_concurrency(1)
    dispatch.deliver(OTHER, keyed(OTHER, b"x"))
    assert offsets(dispatch, 10.0) == [], "its turn has come, and no worker is free"
    epoch = run.epoch
    epoch.lanes.drop_from(1, lambda record: record.offset)
    epoch.tracker.retract(1)
    finish(dispatch, run, 11.0)
    assert offsets(dispatch, 11.0) == [], "the call is kept for the lane whose turn it was"
    assert dispatch.next_due() == 11.0
    ((other, run),) = offsets(dispatch, 11.0)
    assert (other, run.epoch.tp) == (0, OTHER)
