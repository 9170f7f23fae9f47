"""What a running app tells Prometheus. Nothing in here but ``exporter`` needs its client library."""

from penstock.ops.metrics.catalogue import METRICS, Kind, Metric
from penstock.ops.metrics.lag_watch import LagWatch
from penstock.ops.metrics.tally import Tally

__all__ = ["METRICS", "Kind", "LagWatch", "Metric", "Tally"]
