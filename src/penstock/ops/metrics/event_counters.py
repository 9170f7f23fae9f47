"""A listener that counts events. It uses no event that comes once per finished record."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from penstock.core.reports import events
from penstock.core.reports.histogram import Histogram
from penstock.core.reports.record_counts import Counts
from penstock.ops.metrics.metric_list import METRICS

BATCH_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

_COUNTERS = [metric for metric in METRICS.values() if metric.kind == "counter"]
_BY_HANDLER = [metric.name for metric in _COUNTERS if metric.labels == ("group", "handler")]
_BY_TOPIC = [metric.name for metric in _COUNTERS if metric.labels == ("group", "topic")]

Labels = tuple[str, ...]
GroupPartition = tuple[str, str, int]
"""Group, topic, partition."""


class EventCounters:
    """``values`` by metric and labels; ``positions`` by partition: its commit, or its start without one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._positions: dict[GroupPartition, int | None] = {}
        self._owned: set[GroupPartition] = set()
        self._paused: set[GroupPartition] = set()
        self._batches: dict[Labels, Histogram] = {}
        self._engines: dict[Labels, str] = {}
        self._routes: dict[Labels, tuple[str, ...]] = {}  # the routes of a handler that is several
        self._route_counts: dict[Labels, Counts] = {}
        self._takes: dict[type[events.Event], Callable[[Any], None]] = {
            events.Started: self._started,
            events.Stopped: self._stopped,
            events.Progressed: self._progressed,
            events.Routed: self._routed,
            events.RouteProgressed: self._route_progressed,
            events.Assigned: self._assigned,
            events.Revoked: self._gone,
            events.Lost: self._lost,
            events.Committed: self._committed,
            events.Lagging: self._committed,
            events.CommitFailed: lambda event: self._add("penstock_commit_failures_total", event.group, event.topic),
            events.Retried: lambda event: self._add("penstock_retries_total", event.group, event.topic),
            events.Postponed: lambda event: self._add("penstock_postponed_records_total", event.group, event.topic),
            events.Delayed: lambda event: self._add("penstock_delayed_records_total", event.group, event.topic),
            events.Expired: lambda event: self._add("penstock_expired_records_total", event.group, event.topic),
            events.Duplicate: lambda event: self._add("penstock_duplicate_records_total", event.group, event.topic),
            events.Stalled: lambda event: self._add("penstock_stalled_records_total", event.group, event.topic),
            events.Overdue: lambda event: self._add("penstock_overdue_records_total", event.group, event.topic),
            events.HotKey: lambda event: self._add("penstock_hot_keys_total", event.group, event.topic),
            events.Paused: lambda event: self._paused.add(_group_partition(event)),
            events.Resumed: lambda event: self._paused.discard(_group_partition(event)),
            events.OffsetOutOfRange: self._out_of_range,
            events.BatchFinished: self._batch_finished,
            events.ExpectationFailed: self._expectation_failed,
            events.LateRows: lambda event: self._add(
                "penstock_late_rows_total", event.group, event.handler, by=event.rows
            ),
            events.Restarting: lambda event: self._add("penstock_restarts_total", event.group, event.handler),
            events.EventsDropped: lambda event: self._add("penstock_dropped_events_total", by=event.dropped),
            events.Error: lambda event: self._add("penstock_errors_total", event.group, str(event.fatal).lower()),
        }

    def __call__(self, event: events.Event) -> None:
        take = self._takes.get(type(event))
        if take is not None:
            with self._lock:
                take(event)

    def expect(self, group: str, handler: str, topics: Iterable[str]) -> None:
        """Set every counter of this handler to 0: ``increase()`` misses the event with which a counter appears."""
        with self._lock:
            self._expect(group, handler, topics)

    def values(self) -> dict[str, dict[Labels, float]]:
        with self._lock:
            for name, group_partitions in (
                ("penstock_owned_partitions", self._owned),
                ("penstock_paused_partitions", self._paused & self._owned),
            ):
                counts: Counter[Labels] = Counter((group, topic) for group, topic, _ in group_partitions)
                # Labels that existed once keep the value 0 instead of disappearing.
                self._values[name].update({labels: counts[labels] for labels in {*self._values[name], *counts}})
            return {name: dict(values) for name, values in self._values.items()}

    def positions(self) -> dict[GroupPartition, int]:
        with self._lock:
            return {
                group_partition: offset for group_partition, offset in self._positions.items() if offset is not None
            }

    def batches(self) -> dict[Labels, Histogram]:
        with self._lock:
            return {labels: each + Histogram(BATCH_BOUNDS) for labels, each in self._batches.items()}

    def _add(self, metric: str, *labels: str, by: float = 1) -> None:
        self._values[metric][labels] += by

    def _expect(self, group: str, handler: str, topics: Iterable[str]) -> None:
        for metric in _BY_HANDLER:
            self._add(metric, group, handler, by=0)
        self._add("penstock_dropped_events_total", by=0)
        for fatal in ("false", "true"):
            self._add("penstock_errors_total", group, fatal, by=0)
        for topic in topics:
            self._expect_topic(group, topic)

    def _expect_topic(self, group: str, topic: str) -> None:
        for metric in _BY_TOPIC:
            self._add(metric, group, topic, by=0)

    def _started(self, event: events.Started) -> None:
        self._engines[event.group, event.handler] = event.engine
        self._expect(event.group, event.handler, event.topics)
        for expectation in event.expectations:
            self._add("penstock_failed_expectations_total", event.group, event.handler, expectation, by=0)
        if event.engine == "spark":
            self._batches.setdefault((event.group, event.handler), Histogram(BATCH_BOUNDS))
        self._add("penstock_running_handlers", event.group, event.engine)
        self._count(event.group, event.handler, Counts())

    def _stopped(self, event: events.Stopped) -> None:
        engine = self._engines.pop((event.group, event.handler), None)
        if engine is not None:
            self._add("penstock_running_handlers", event.group, engine, by=-1)
        self._progressed(event)

    def _progressed(self, event: events.Progressed | events.Stopped) -> None:
        # Records are counted for the route that ran, so those of the member are the ones that no route took.
        routes = self._routes.get((event.group, event.handler), ())
        of_routes = (self._route_counts.get((event.group, name), Counts()) for name in routes)
        self._count(event.group, event.handler, _counts(event) - sum(of_routes, Counts()))

    def _routed(self, event: events.Routed) -> None:
        if len(event.routes) == 1:  # it has the name of the member, and its counts
            return
        self._routes[event.group, event.handler] = event.routes
        for name in event.routes:
            self._count(event.group, name, Counts())

    def _route_progressed(self, event: events.RouteProgressed) -> None:
        self._route_counts[event.group, event.handler] = _counts(event)
        self._count(event.group, event.handler, _counts(event))

    def _count(self, group: str, handler: str, counts: Counts) -> None:
        """Set the counters to the sums of the run, from the start on: a rate needs a first value."""
        for metric, value in (
            ("penstock_finished_records_total", counts.read),
            ("penstock_outputs_total", counts.written),
            ("penstock_dead_letters_total", counts.dead_lettered),
            ("penstock_skipped_records_total", counts.skipped),
        ):
            self._values[metric][group, handler] = value

    def _assigned(self, event: events.Assigned) -> None:
        self._positions[_group_partition(event)] = event.offset
        self._owned.add(_group_partition(event))
        self._paused.discard(_group_partition(event))
        self._add("penstock_paused_partitions", event.group, event.topic, by=0)
        self._expect_topic(event.group, event.topic)  # a retry topic, or one that a pattern has found

    def _gone(self, event: events.Revoked | events.Lost) -> None:
        self._positions.pop(_group_partition(event), None)
        self._owned.discard(_group_partition(event))

    def _lost(self, event: events.Lost) -> None:
        self._gone(event)
        self._add("penstock_lost_partitions_total", event.group, event.topic)

    def _committed(self, event: events.Committed | events.Lagging) -> None:
        group_partition = _group_partition(event)
        # The answer to a commit may come after the revoke. On Spark no partition is assigned: the driver has all.
        if group_partition in self._positions or isinstance(event, events.Lagging):
            self._positions[group_partition] = event.offset
            self._expect_topic(event.group, event.topic)

    def _out_of_range(self, event: events.OffsetOutOfRange) -> None:
        self._add("penstock_lost_offsets_total", event.group, event.topic, by=event.skipped)

    def _expectation_failed(self, event: events.ExpectationFailed) -> None:
        labels = (event.group, event.handler, event.expectation)
        self._add("penstock_failed_expectations_total", *labels, by=event.rows)

    def _batch_finished(self, event: events.BatchFinished) -> None:
        labels = (event.group, event.handler)
        self._batches.setdefault(labels, Histogram(BATCH_BOUNDS)).observe(event.seconds)
        if event.next_size is not None:
            self._values["penstock_next_batch_records"][labels] = event.next_size


def _counts(event: events.CountsEvent) -> Counts:
    return Counts(event.read, event.written, event.dead_lettered, event.skipped)


def _group_partition(event: Any) -> GroupPartition:
    return event.group, event.topic, event.partition
