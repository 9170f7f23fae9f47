"""Collects all metrics in Prometheus' format at each scrape."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from penstock import __version__
from penstock.core.reports.histogram import Histogram
from penstock.engine.observe.member_metrics import MemberMetrics
from penstock.ops.metrics.event_counters import EventCounters, Labels
from penstock.ops.metrics.lag_poller import LagPoller
from penstock.ops.metrics.metric_list import METRICS, Metric

_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_Values = Mapping[Labels, float]


def make_registry(
    event_counters: EventCounters, lag_poller: LagPoller, member_metrics: Callable[[], list[MemberMetrics]]
) -> CollectorRegistry:
    """Return the registry for the HTTP server. It also has the memory and CPU time of the process."""
    registry = CollectorRegistry()
    registry.register(Exporter(event_counters, lag_poller, member_metrics))
    ProcessCollector(registry=registry)
    return registry


class Exporter(Collector):
    def __init__(
        self, event_counters: EventCounters, lag_poller: LagPoller, member_metrics: Callable[[], list[MemberMetrics]]
    ) -> None:
        self._event_counters = event_counters
        self._lag_poller = lag_poller
        self._member_metrics = member_metrics

    def describe(self) -> Iterator[_Family]:
        """Return the metrics without values. Prometheus' library calls this once, at registration."""
        return (_family(metric) for metric in METRICS.values())

    def collect(self) -> Iterator[_Family]:
        """Return every metric of ``METRICS``, also those without values."""
        member_metrics, recommended = self._member_metrics(), self._lag_poller.recommendations
        values: dict[str, _Values] = {
            **self._event_counters.values(),
            **_of_members(member_metrics),
            **self._of_lag(),
            "penstock_build_info": {(__version__,): 1},
            "penstock_recommended_members": {} if recommended is None else recommended.values,
        }
        histograms = {**_watches(member_metrics), "penstock_batch_seconds": self._event_counters.batches()}
        for name, metric in METRICS.items():
            family = _family(metric)
            if isinstance(family, HistogramMetricFamily):
                for labels, histogram in sorted(histograms.get(name, {}).items()):
                    family.add_metric(labels, _buckets(histogram), histogram.total)
            else:
                for labels, value in sorted(values.get(name, {}).items()):
                    family.add_metric(labels, value)
            yield family

    def _of_lag(self) -> dict[str, _Values]:
        values: defaultdict[str, dict[Labels, float]] = defaultdict(dict)
        cluster, group_prefix = self._lag_poller.cluster_name, "kafka_consumergroup_group_"
        totals: defaultdict[tuple[str, Labels], float] = defaultdict(float)
        # Leave out partitions that have moved since the last measurement: their new owner reports them.
        owned = self._event_counters.positions()
        lags = {
            group_partition: lag for group_partition, lag in self._lag_poller.lags.items() if group_partition in owned
        }
        for (group, topic, partition), each in lags.items():
            tp: Labels = (cluster, group, topic, str(partition))
            values["kafka_partition_latest_offset"][cluster, topic, str(partition)] = each.end or 0
            values["kafka_partition_earliest_offset"][cluster, topic, str(partition)] = each.start or 0
            values[f"{group_prefix}offset"][tp] = each.committed or 0
            lag = values[f"{group_prefix}lag"][tp] = each.lag or 0
            for total, labels in (("sum_lag", tp[:2]), ("topic_sum_lag", tp[:3])):
                totals[f"{group_prefix}{total}", labels] += lag
            most = totals[f"{group_prefix}max_lag", tp[:2]]
            totals[f"{group_prefix}max_lag", tp[:2]] = max(most, lag)
            if each.lag_seconds is not None:
                values[f"{group_prefix}lag_seconds"][tp] = each.lag_seconds
                longest = totals[f"{group_prefix}max_lag_seconds", tp[:2]]
                totals[f"{group_prefix}max_lag_seconds", tp[:2]] = max(longest, each.lag_seconds)
        for (name, labels), value in totals.items():
            values[name][labels] = value
        age = self._lag_poller.age
        return {**values, "penstock_lag_age_seconds": {} if age is None else {(): age}}


def _family(metric: Metric) -> _Family:
    if metric.kind == "counter":
        return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    if metric.kind == "gauge":
        return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)


def _of_members(member_metrics: list[MemberMetrics]) -> dict[str, _Values]:
    """Combine the members of one handler: sums of counts, maxima of times."""
    values: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))
    for each in member_metrics:
        labels = (each.group, each.handler)
        values["penstock_in_flight"][labels] += each.in_flight
        values["penstock_lanes"][labels] += each.lanes
        values["penstock_works"][labels] += each.works
        values["penstock_concurrency"][labels] += each.concurrency
        values["penstock_open_breakers"][labels] += each.open_breakers
        values["penstock_waiting_for_rate"][labels] += each.waiting_for_rate
        for name, seconds in (
            ("penstock_longest_record_seconds", each.longest_seconds),
            ("penstock_poll_age_seconds", each.polled_seconds_ago),
        ):
            values[name][labels] = max(values[name][labels], seconds)
        for (topic, partition), size in each.map_bytes.items():
            values["penstock_offset_map_bytes"][each.group, topic, str(partition)] = size
    return {name: dict(each) for name, each in values.items()}


def _watches(member_metrics: list[MemberMetrics]) -> dict[str, dict[Labels, Histogram]]:
    found: defaultdict[str, dict[Labels, Histogram]] = defaultdict(dict)
    for each in member_metrics:
        labels = (each.group, each.handler)
        for name, histogram in (
            ("penstock_handler_seconds", each.watches.handler),
            ("penstock_commit_seconds", each.watches.commit),
            ("penstock_rebalance_seconds", each.watches.rebalance),
        ):
            known = found[name].get(labels, Histogram(histogram.bounds))
            found[name][labels] = known + histogram
    return found


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [*map(str, histogram.bounds), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True))
