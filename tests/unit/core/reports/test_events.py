"""Events are a closed list with stable names."""

import json

from penstock.core.reports import events
from penstock.core.reports.event_json import name, to_json


def all_events() -> list[type[events.Event]]:
    kinds = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, events.Event)]
    return [kind for kind in kinds if not kind.__subclasses__()]  # the others are only bases


def test_an_event_is_one_line_of_json() -> None:
    line = to_json(events.Committed(member="m-1", group="g", topic="t", partition=1, offset=5), ts=12.3456789)
    assert "\n" not in line
    assert json.loads(line) == {
        "event": "committed",
        "ts": 12.345679,
        "group": "g",
        "member": "m-1",
        "topic": "t",
        "partition": 1,
        "offset": 5,
    }


def test_names_are_words_in_lower_case() -> None:
    event = events.BatchFinished(
        group="g", handler="h", batch=1, read=1, written=1, dead_lettered=0, skipped=0, seconds=0.1
    )
    assert name(event) == "batch_finished"


def test_the_list_is_closed_and_known() -> None:
    assert {kind.__name__ for kind in all_events()} == {
        "Started", "SinkOpened", "RangeRead", "TopicCreated", "Assigned", "Revoked", "Lost", "StartOverridden",
        "OffsetOutOfRange", "Dispatched", "Stalled", "Finished", "Skipped", "Retried", "Postponed", "DeadLettered",
        "Committed", "CommitFailed", "Paused", "Resumed", "Progressed", "BatchFinished", "Lagging", "Restarting",
        "Error", "Stopping", "Stopped", "AwaitingDependency", "Rebalanced", "HotKey", "Joining", "EventsDropped",
        "Delayed", "Duplicate", "Expired", "Overdue",
        "ExpectationFailed", "LateRows", "TableMaintained",
        "Routed", "RouteProgressed", "ConcurrencyChanged",
        "BreakerOpened", "BreakerClosed", "OffsetMapFull", "Commanded", "RateLimited", "RateEased",
    }  # fmt: skip


def test_only_events_of_single_records_are_marked_so() -> None:
    assert {kind.__name__ for kind in all_events() if kind.per_record} == {"Dispatched", "Finished", "Skipped"}
