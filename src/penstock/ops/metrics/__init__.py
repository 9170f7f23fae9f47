"""What a running app tells Prometheus. Nothing in here but ``exporter`` needs its client library."""

from penstock.ops.metrics.event_counters import EventCounters
from penstock.ops.metrics.lag_poller import LagPoller
from penstock.ops.metrics.metric_list import METRICS, Kind, Metric

__all__ = ["METRICS", "EventCounters", "Kind", "LagPoller", "Metric"]
