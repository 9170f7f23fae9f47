"""The events of several members of one handler are merged."""

from penstock.core.reports import events
from penstock.engine.observe.event_merger import EventMerger


def progressed(read: int) -> events.Progressed:
    return events.Progressed(group="g", handler="h", read=read, written=0, dead_lettered=1, skipped=0)


def stopped(read: int, seconds: float) -> events.Stopped:
    return events.Stopped(group="g", handler="h", read=read, written=0, dead_lettered=1, skipped=0, seconds=seconds)


def test_counts_are_added_up_and_the_start_and_the_stop_come_once() -> None:
    reported: list[events.Event] = []
    merger = EventMerger(reported.append, 2)
    one, two = merger.of(0), merger.of(1)
    for member in (one, two):
        member(events.Started(engine="local", group="g", handler="h", topics=("t",), lag=9))
    one(progressed(5))
    two(progressed(3))
    one(progressed(6))
    for member in (one, two):
        member(events.Stopping(group="g", handler="h", reason="asked to"))
    one(stopped(7, 1.0))
    two(stopped(3, 2.0))
    assert [event.lag for event in reported if isinstance(event, events.Started)] == [9]
    assert [event.read for event in reported if isinstance(event, events.Progressed)] == [5, 8, 9]
    assert len([event for event in reported if isinstance(event, events.Stopping)]) == 1
    (end,) = [event for event in reported if isinstance(event, events.Stopped)]
    assert (end.read, end.dead_lettered, end.seconds) == (10, 2, 2.0)


def test_all_else_goes_through_as_it_is() -> None:
    reported: list[events.Event] = []
    event = events.Lost(group="g", member="m", topic="t", partition=0, epoch=1)
    EventMerger(reported.append, 2).of(1)(event)
    EventMerger(reported.append, 1).of(0)(progressed(1))
    assert reported == [event, progressed(1)]
