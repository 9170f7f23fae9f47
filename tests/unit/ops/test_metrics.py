"""Exported metrics, from events and members, without a broker."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import generate_latest

from penstock.cli.runtime.metrics_server import serve_metrics
from penstock.core.progress.end_history import EndHistory
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.reports.histogram import Histogram
from penstock.engine import HealthBoard
from penstock.engine.observe.member_metrics import MemberMetrics, Stopwatches
from penstock.errors import ConfigError, PenstockError, ServerError, SetupError
from penstock.kafka import Cluster
from penstock.kafka.admin.log_bounds import Bounds
from penstock.ops.group_lag import PartitionLag
from penstock.ops.metrics import METRICS, EventCounters, LagPoller, Recommendations
from penstock.ops.metrics.exporter import make_registry
from prometheus_text import problems_of, read_metrics

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
WHERE: dict[str, Any] = {"group": "g", "topic": "t", "partition": 0}
WHO: dict[str, Any] = {**WHERE, "member": "m"}


def no_cluster() -> Cluster:
    raise AssertionError("nobody should ask a cluster")


def scrape(event_counters: EventCounters, *member_metrics: MemberMetrics, watch: LagPoller | None = None) -> str:
    registry = make_registry(event_counters, watch or LagPoller(no_cluster, dict), lambda: list(member_metrics))
    return generate_latest(registry).decode()


def value_of(text: str, name: str, **labels: str) -> float:
    (found,) = [
        sample.value
        for family in read_metrics(text).values()
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return found


def member_metrics(watches: Stopwatches, **changes: int) -> MemberMetrics:
    numbers: dict[str, Any] = {"in_flight": 7, "lanes": 3, "works": 2, "concurrency": 32, **changes}
    return MemberMetrics(
        handler="ship",
        group="g",
        polled_seconds_ago=0.1,
        longest_seconds=1.5,
        map_bytes={("t", 0): 40},
        watches=watches,
        **numbers,
    )


def test_the_page_lists_each_metric_with_its_kind_and_labels_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", DOCS.read_text(), re.MULTILINE)
    reported = {name: (kind, tuple(re.findall(r"\w+", labels))) for name, kind, labels in rows}
    assert reported == {name: (metric.kind, metric.labels) for name, metric in METRICS.items()}
    assert len(rows) == len(METRICS)


def test_every_metric_is_there_before_anything_has_happened() -> None:
    text = scrape(EventCounters())
    assert problems_of(text) == []
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    penstocks = {name: kind for name, kind in types.items() if not name.startswith("process_")}
    assert penstocks == {name: metric.kind for name, metric in METRICS.items()}


def test_counts_are_those_of_the_last_report() -> None:
    event_counters = EventCounters()
    counts = {"read": 5, "written": 4, "dead_lettered": 1, "skipped": 2}
    event_counters(events.Started(engine="local", group="g", handler="ship", topics=("t",), lag=3))
    assert value_of(scrape(event_counters), "penstock_dead_letters_total", group="g", handler="ship") == 0
    event_counters(events.Progressed(group="g", handler="ship", **counts))
    event_counters(events.Progressed(group="g", handler="ship", **{**counts, "read": 9}))
    text = scrape(event_counters)
    assert value_of(text, "penstock_finished_records_total", group="g", handler="ship") == 9
    assert value_of(text, "penstock_outputs_total", group="g", handler="ship") == 4
    assert value_of(text, "penstock_dead_letters_total", group="g", handler="ship") == 1
    assert value_of(text, "penstock_skipped_records_total", group="g", handler="ship") == 2
    assert value_of(text, "penstock_running_handlers", group="g", engine="local") == 1
    event_counters(events.Stopped(group="g", handler="ship", seconds=1.0, **{**counts, "read": 10}))
    text = scrape(event_counters)
    assert value_of(text, "penstock_finished_records_total", group="g", handler="ship") == 10
    assert value_of(text, "penstock_running_handlers", group="g", engine="local") == 0


def test_records_of_routes_count_once_and_the_member_counts_what_no_route_took() -> None:
    event_counters = EventCounters()
    event_counters(events.Routed(group="g", handler="a+b", routes=("a", "b"), otherwise="skip"))
    event_counters(events.Started(engine="local", group="g", handler="a+b", topics=("t",), lag=3))
    text = scrape(event_counters)
    assert [value_of(text, FINISHED, group="g", handler=name) for name in ("a", "b", "a+b")] == [0, 0, 0]
    event_counters(events.RouteProgressed(group="g", handler="a", read=5, written=5, dead_lettered=0, skipped=0))
    event_counters(events.RouteProgressed(group="g", handler="b", read=2, written=0, dead_lettered=2, skipped=0))
    event_counters(events.Progressed(group="g", handler="a+b", read=10, written=5, dead_lettered=2, skipped=3))
    text = scrape(event_counters)
    assert [value_of(text, FINISHED, group="g", handler=name) for name in ("a", "b", "a+b")] == [5, 2, 3]
    assert value_of(text, "penstock_dead_letters_total", group="g", handler="b") == 2
    assert value_of(text, "penstock_skipped_records_total", group="g", handler="a+b") == 3


def test_a_single_route_counts_as_its_member() -> None:
    event_counters = EventCounters()
    event_counters(events.Routed(group="g", handler="a", routes=("a",), otherwise="skip"))
    event_counters(events.Progressed(group="g", handler="a", read=10, written=5, dead_lettered=2, skipped=3))
    assert value_of(scrape(event_counters), FINISHED, group="g", handler="a") == 10


FINISHED = "penstock_finished_records_total"


def counters(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels[label] for label in METRICS[sample.name].labels)): sample.value
        for family in read_metrics(text).values()
        for sample in family.samples
        if f"{family.name}_total" in METRICS and not sample.name.endswith("_created")
    }


LABELS = {"group": "g", "handler": "ship", "topic": "t", "fatal": "false"}
ZEROS = {
    (metric.name, tuple(LABELS[label] for label in metric.labels))
    for metric in METRICS.values()
    if metric.kind == "counter" and "expectation" not in metric.labels
}


def test_every_counter_is_0_before_its_first_event_so_that_increase_sees_that() -> None:
    event_counters = EventCounters()
    event_counters.expect("g", "ship", ["t"])
    found = counters(scrape(event_counters))
    assert found.keys() == {*ZEROS, ("penstock_errors_total", ("g", "true"))}
    assert set(found.values()) == {0}
    event_counters(events.Retried(**WHO, offset=1, epoch=1, attempt=1, reason="r", seconds=1.0))
    assert counters(scrape(event_counters))["penstock_retries_total", ("g", "t")] == 1


def test_counters_with_labels_that_are_known_later_start_at_0() -> None:
    started = EventCounters()
    started(events.Started(engine="spark", group="g", handler="ship", topics=("t",), lag=3))
    assert counters(scrape(started)).keys() > ZEROS
    assert value_of(scrape(started), "penstock_batch_seconds_count", group="g", handler="ship") == 0
    found_by_pattern = EventCounters()
    found_by_pattern(events.Assigned(**WHO, epoch=1, offset=None))
    assert ("penstock_lost_offsets_total", ("g", "t")) in counters(scrape(found_by_pattern))


def test_rows_that_a_pipeline_lost_are_counted_by_expectation_and_from_0_on() -> None:
    event_counters, of_orders = EventCounters(), {"group": "g", "handler": "h", "expectation": "a > 0"}
    event_counters(
        events.Started(engine="spark", group="g", handler="h", topics=("t",), lag=3, expectations=("a > 0", "b > 0"))
    )
    for rows in (2, 3):
        event_counters(events.ExpectationFailed(group="g", handler="h", expectation="a > 0", rows=rows))
        event_counters(events.LateRows(group="g", handler="h", rows=rows))
    text = scrape(event_counters)
    assert problems_of(text) == []
    assert value_of(text, "penstock_failed_expectations_total", **of_orders) == 5
    assert value_of(text, "penstock_failed_expectations_total", **{**of_orders, "expectation": "b > 0"}) == 0
    assert value_of(text, "penstock_late_rows_total", group="g", handler="h") == 5


def test_a_partition_that_goes_is_neither_owned_nor_paused_nor_has_a_position() -> None:
    event_counters = EventCounters()
    event_counters(events.Assigned(**WHO, epoch=1, offset=None))
    event_counters(events.Assigned(**{**WHO, "partition": 1}, epoch=1, offset=5))
    event_counters(events.Paused(**WHERE))
    assert event_counters.positions() == {("g", "t", 1): 5}
    event_counters(events.Committed(**WHO, offset=8))
    assert event_counters.positions() == {("g", "t", 0): 8, ("g", "t", 1): 5}
    text = scrape(event_counters)
    assert value_of(text, "penstock_owned_partitions", group="g", topic="t") == 2
    assert value_of(text, "penstock_paused_partitions", group="g", topic="t") == 1
    event_counters(events.Revoked(**WHO, epoch=1, unfinished=0))
    event_counters(events.Lost(**{**WHO, "partition": 1}, epoch=1))
    event_counters(events.Committed(**WHO, offset=9))
    text = scrape(event_counters)
    assert event_counters.positions() == {}
    assert value_of(text, "penstock_owned_partitions", group="g", topic="t") == 0
    assert value_of(text, "penstock_paused_partitions", group="g", topic="t") == 0
    assert value_of(text, "penstock_lost_partitions_total", group="g", topic="t") == 1


def test_batches_of_spark_are_counted_and_its_partitions_are_known_by_their_lag() -> None:
    event_counters = EventCounters()
    counts = {"read": 5, "written": 4, "dead_lettered": 1, "skipped": 2}
    for seconds in (0.2, 2.0):
        event_counters(
            events.BatchFinished(group="g", handler="ship", batch=1, seconds=seconds, lag=3, next_size=100, **counts)
        )
    event_counters(events.Lagging(**WHERE, offset=5, lag=3))
    event_counters(events.Committed(**{**WHO, "partition": 9}, offset=5))
    event_counters(events.EventsDropped(app="shop", dropped=7))
    event_counters(events.Restarting(group="g", handler="ship", attempt=1, reason="r", seconds=1.0))
    text = scrape(event_counters)
    assert problems_of(text) == []
    assert event_counters.positions() == {("g", "t", 0): 5}
    assert value_of(text, "penstock_batch_seconds_bucket", group="g", handler="ship", le="0.25") == 1
    assert value_of(text, "penstock_batch_seconds_sum", group="g", handler="ship") == 2.2
    assert value_of(text, "penstock_next_batch_records", group="g", handler="ship") == 100
    assert value_of(text, "penstock_dropped_events_total") == 7
    assert value_of(text, "penstock_restarts_total", group="g", handler="ship") == 1


def test_the_members_of_a_handler_are_reported_as_one() -> None:
    now = 0.0
    watches = Stopwatches(lambda: now)
    watches.worked(10, 0.02)
    watches.worked(0, 0.5)
    watches.commit_asked()
    now = 0.3
    watches.commit_answered()
    watches.commit_answered()
    watches.rebalance_ended()
    watches.rebalance_ended()
    watches.rebalance_began()
    now = 1.3
    watches.rebalance_began()
    watches.rebalance_ended()
    text = scrape(EventCounters(), member_metrics(watches), member_metrics(Stopwatches(lambda: 0.0), in_flight=1))
    assert problems_of(text) == []
    assert value_of(text, "penstock_in_flight", group="g", handler="ship") == 8
    assert value_of(text, "penstock_concurrency", group="g", handler="ship") == 64
    assert value_of(text, "penstock_offset_map_bytes", group="g", topic="t", partition="0") == 40
    assert value_of(text, "penstock_handler_seconds_count", group="g", handler="ship") == 10
    assert value_of(text, "penstock_handler_seconds_bucket", group="g", handler="ship", le="0.001") == 0
    assert value_of(text, "penstock_handler_seconds_bucket", group="g", handler="ship", le="0.005") == 10
    assert value_of(text, "penstock_commit_seconds_count", group="g", handler="ship") == 1
    assert value_of(text, "penstock_rebalance_seconds_sum", group="g", handler="ship") == pytest.approx(1.3)


def test_lag_is_reported_by_partition_and_in_total() -> None:
    event_counters, watch = EventCounters(), LagPoller(no_cluster, dict)
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        event_counters(events.Lagging(group="g", topic=topic, partition=partition, offset=0, lag=0))
    watch.cluster_name = "c"
    watch.lags = {
        ("g", "moved", 0): PartitionLag("moved", 0, committed=0, start=0, end=1_000),
        ("g", "t", 0): PartitionLag("t", 0, committed=5, start=0, end=15, lag_seconds=4.0),
        ("g", "t", 1): PartitionLag("t", 1, committed=0, start=3, end=5, lag_seconds=9.0),
        ("g", "u", 0): PartitionLag("u", 0, committed=7, start=0, end=7),
    }
    text = scrape(event_counters, watch=watch)
    assert problems_of(text) == []
    group = {"cluster_name": "c", "group": "g"}
    assert value_of(text, "kafka_consumergroup_group_lag", **group, topic="t", partition="1") == 2
    assert value_of(text, "kafka_consumergroup_group_sum_lag", **group) == 12
    assert value_of(text, "kafka_consumergroup_group_topic_sum_lag", **group, topic="t") == 12
    assert value_of(text, "kafka_consumergroup_group_max_lag", **group) == 10
    assert value_of(text, "kafka_consumergroup_group_max_lag_seconds", **group) == 9
    assert value_of(text, "kafka_partition_latest_offset", cluster_name="c", topic="u", partition="0") == 7


def test_values_that_brokers_do_not_answer_are_kept_and_their_age_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[dict[TopicPartition, Bounds | PenstockError]] = [
        {("t", 0): Bounds(0, 10), ("t", 1): Bounds(0, 20)},
        {("t", 0): Bounds(0, 12), ("t", 1): ServerError("away")},
    ]
    monkeypatch.setattr("penstock.ops.metrics.lag_poller.Logs.bounds", lambda *_: answers.pop(0))
    monkeypatch.setattr("penstock.ops.metrics.lag_poller.times_at", lambda *_: {})
    watch, cluster = LagPoller(no_cluster, dict), cast("Cluster", None)
    watch._look(cluster, {("g", "t", 0): 10, ("g", "t", 1): 15})
    looked = watch._looked
    watch._look(cluster, {("g", "t", 0): 11, ("g", "t", 1): 16})
    assert {spot: lag.lag for spot, lag in watch.lags.items()} == {("g", "t", 0): 1, ("g", "t", 1): 5}
    assert watch.lags["g", "t", 0].lag_seconds is not None
    assert watch._looked == looked


def test_a_value_at_a_bound_is_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 1.5, 2.0, 3.0):
        histogram.observe(value)
    assert histogram.counts == [1, 2, 1]
    assert (histogram + histogram).total == 15


def test_when_a_record_was_written_follows_from_when_the_log_had_which_end() -> None:
    history = EndHistory()
    for at, end in ((10.0, 100), (20.0, 100), (30.0, 200)):
        history.note(at, end)
    assert history.written_at(99) is None
    assert history.written_at(100) == 20.0
    assert history.written_at(150) == 25.0
    assert history.written_at(200) is None
    history.note(40.0, 10)
    assert history.written_at(100) is None
    assert history.written_at(5) is None


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with (
        pytest.raises(SetupError, match=r"penstock\[metrics\]"),
        serve_metrics("0", EventCounters(), HealthBoard(), make_cluster=no_cluster),
    ):
        pass


def test_an_invalid_port_and_a_port_in_use_are_refused() -> None:
    with (
        pytest.raises(ConfigError, match="--metrics 'x' is not a port"),
        serve_metrics("x", EventCounters(), HealthBoard(), make_cluster=no_cluster),
    ):
        pass
    with (
        serve_metrics("0", EventCounters(), HealthBoard(), make_cluster=no_cluster) as port,
        pytest.raises(SetupError, match="cannot be served"),
        serve_metrics(str(port), EventCounters(), HealthBoard(), make_cluster=no_cluster),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# HELP a_total x\n# TYPE a_total gauge\na_total 1\n", "is no counter"),
        ("# HELP a x\n# TYPE a gauge\na 1\na 1\n", "occurs 2 times"),
        ("# TYPE a gauge\na 1\n", "no HELP"),
        ("# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1\n", "base unit"),
        ("# HELP aB x\n# TYPE aB gauge\naB 1\n", "snake case"),
        (
            '# HELP h x\n# TYPE h histogram\nh_bucket{le="1.0"} 2\nh_bucket{le="+Inf"} 1\nh_count 1\nh_sum 1\n',
            "do not ascend",
        ),
    ],
)
def test_the_check_of_a_text_finds_what_is_wrong(text: str, problem: str) -> None:
    assert any(problem in each for each in problems_of(text))


def test_the_recommended_members_follow_from_what_a_process_measures_of_its_partitions() -> None:
    watches = Stopwatches(lambda: 0.0)
    one = replace(member_metrics(watches), concurrency=10, map_bytes={("t", 0): 40, ("t", 1): 0})
    recommendations = Recommendations(lambda: [one])
    watch = LagPoller(no_cluster, dict, recommendations)
    for second in range(0, 100, 10):
        end = 100 * second  # of each partition: 200 records a second for this process, 800 for the group of 4
        watch.lags = {("g", "t", n): PartitionLag("t", n, committed=end, start=0, end=end) for n in range(2)}
        watches.worked(2_000, 200.0)  # 0.1 s each
        recommendations.look(watch.lags, {"t": 8}, float(second))
    registry = make_registry(EventCounters(), watch, lambda: [one])
    text = generate_latest(registry).decode()
    # 80 busy workers, at most 70 % of the time, 10 in each member; but the topic has 8 partitions.
    assert value_of(text, "penstock_recommended_members", group="g", handler="ship") == 8
