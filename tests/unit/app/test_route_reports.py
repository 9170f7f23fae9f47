"""Which route handled which record: names of events, and counts."""

from typing import Any

from penstock import App, Record
from penstock.app import RouteGroup
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.routing.route_reports import RouteReports
from penstock.core.failures.outcome import DONE, Done, Failed, ProducerRecord, Skipped
from penstock.core.progress.tracker import Tracker
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.effects import Attempt, Effects, Send
from penstock.core.scheduling.lanes import Epoch, Lane, LaneRun

OUTPUT = ProducerRecord("out", None, b"")


def epoch_of(number: int = 1) -> Epoch:
    return Epoch(("orders", 0), number, Tracker(), None)


def record(offset: int) -> Record:
    return Record("orders", 0, offset, None, b"")


def reports() -> RouteReports:
    app = App("shop")

    @app.consume("orders", when={"type": "created"}, dead_letter="dlq")
    def create(record: Record) -> None: ...

    @app.consume("orders", when={"type": "cancelled"}, dead_letter="dlq")
    def cancel(record: Record) -> None: ...

    (group,) = app.handlers
    assert isinstance(group, RouteGroup)
    return RouteReports(group, RecordAdapter())


def run_of(epoch: Epoch, *offsets: int, collected: int = 0) -> LaneRun:
    return LaneRun(Lane(epoch, b"k"), [record(offset) for offset in offsets], collected=collected)


def test_records_are_counted_for_their_routes_when_they_are_finished() -> None:
    found, epoch = reports(), epoch_of()
    run = run_of(epoch, 0, 1, 2)
    found.note([(run, [Done(handler="create"), Skipped("", handler="cancel"), DONE], True)])
    assert [found.name_of(epoch, offset) for offset in range(3)] == ["create", "cancel", "create+cancel"]
    assert found.counts == {"create": Counts(), "cancel": Counts()}
    effects = Effects(finished=[(epoch, run.records)], skipped=[(Attempt(epoch, run.records[1], 1, 1), "")])
    found.settled(effects)
    assert found.counts == {"create": Counts(1, 0, 0, 0), "cancel": Counts(1, 0, 0, 1)}


def test_outcomes_that_arrive_in_parts_belong_to_the_next_records_of_their_run() -> None:
    found, epoch = reports(), epoch_of()
    run = run_of(epoch, 0, 1, 2, collected=1)
    found.note([(run, [Done(handler="create")], False), (run, [Done(handler="cancel")], True)])
    assert [found.name_of(epoch, offset) for offset in range(3)] == ["create+cancel", "create", "cancel"]


def test_what_is_produced_counts_when_the_broker_has_it() -> None:
    found, epoch = reports(), epoch_of()
    failure = Failed("OSError", "away", handler="cancel")
    outcomes: list[Any] = [Done((OUTPUT,), handler="create"), failure, failure]
    run = run_of(epoch, 0, 1, 2)
    found.note([(run, outcomes, True)])
    tried = [Attempt(epoch, each, each.offset, 1) for each in run.records]
    found.delivered(Send(tried[0], OUTPUT))
    found.delivered(Send(tried[1], OUTPUT, failure))
    found.delivered(Send(tried[2], OUTPUT, failure, 60.0))  # a retry topic has it: it is not finished
    assert found.counts == {"create": Counts(1, 1, 0, 0), "cancel": Counts(1, 0, 1, 0)}


def test_only_changed_counts_are_reported() -> None:
    found, epoch = reports(), epoch_of()
    assert [event.handler for event in found.progress()] == ["create", "cancel"]
    assert [*found.progress()] == []
    run = run_of(epoch, 0)
    found.note([(run, [Done(handler="cancel")], True)])
    found.settled(Effects(finished=[(epoch, run.records)]))
    assert [(event.handler, event.read) for event in found.progress()] == [("cancel", 1)]


def test_names_of_an_epoch_that_is_over_are_forgotten() -> None:
    found, old, new = reports(), epoch_of(1), epoch_of(2)
    found.note([(run_of(old, 0, 1), [Done(handler="create")] * 2, True)])
    found.note([(run_of(new, 0), [Done(handler="cancel")], True)])
    assert found.name_of(new, 0) == "cancel"
    assert found.name_of(new, 1) == found.name_of(old, 1) == "create+cancel"
    found.note([(run_of(old, 0), [Done(handler="create")], True)])
    assert found.name_of(new, 0) == "cancel", "a late outcome changes nothing"
