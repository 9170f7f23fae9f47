"""The metrics of a running app for Prometheus. Only ``exporter`` needs Prometheus' client library."""

from penstock.ops.metrics.event_counters import EventCounters
from penstock.ops.metrics.lag_poller import LagPoller
from penstock.ops.metrics.metric_list import METRICS, Kind, Metric
from penstock.ops.metrics.recommendations import Recommendations

__all__ = ["METRICS", "EventCounters", "Kind", "LagPoller", "Metric", "Recommendations"]
