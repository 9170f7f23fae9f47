"""Every metric with its kind, labels and meaning. docs/metrics.md has the same list, and a test compares them."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


_PARTITION = ("cluster_name", "group", "topic", "partition")
_HANDLER = ("group", "handler")
_TOPIC = ("group", "topic")

METRICS = {
    metric.name: metric
    for metric in (
        # Under the names of the common lag exporters, so that their dashboards and alerts work.
        Metric("kafka_consumergroup_group_offset", "gauge", _PARTITION, "The group's committed offset."),
        Metric("kafka_consumergroup_group_lag", "gauge", _PARTITION, "Records between the commit and the log's end."),
        Metric(
            "kafka_consumergroup_group_lag_seconds",
            "gauge",
            _PARTITION,
            "How long the first record that is not committed has been waiting.",
        ),
        Metric(
            "kafka_consumergroup_group_max_lag",
            "gauge",
            ("cluster_name", "group"),
            "The largest lag of a partition of this process.",
        ),
        Metric(
            "kafka_consumergroup_group_max_lag_seconds",
            "gauge",
            ("cluster_name", "group"),
            "The longest lag of a partition of this process, in seconds.",
        ),
        Metric(
            "kafka_consumergroup_group_sum_lag",
            "gauge",
            ("cluster_name", "group"),
            "The lag of all partitions of this process.",
        ),
        Metric(
            "kafka_consumergroup_group_topic_sum_lag",
            "gauge",
            ("cluster_name", "group", "topic"),
            "The lag of all partitions of this process in one topic.",
        ),
        Metric(
            "kafka_partition_latest_offset",
            "gauge",
            ("cluster_name", "topic", "partition"),
            "The offset that the next record of the partition will get.",
        ),
        Metric(
            "kafka_partition_earliest_offset",
            "gauge",
            ("cluster_name", "topic", "partition"),
            "The first offset that the log still has.",
        ),
        Metric("penstock_lag_age_seconds", "gauge", (), "Seconds since the lag was last measured."),
        # Both engines.
        Metric("penstock_build_info", "gauge", ("version",), "Always 1; the version is its label."),
        Metric("penstock_finished_records_total", "counter", _HANDLER, "Records that are finished, with any outcome."),
        Metric("penstock_outputs_total", "counter", _HANDLER, "Outputs that Kafka has acknowledged."),
        Metric(
            "penstock_skipped_records_total",
            "counter",
            _HANDLER,
            "Records for which the handler raised Skip, or that an expectation dropped.",
        ),
        Metric("penstock_dead_letters_total", "counter", _HANDLER, "Dead letters that Kafka has acknowledged."),
        Metric(
            "penstock_dropped_events_total",
            "counter",
            (),
            "Events that listeners of the app were too slow to take.",
        ),
        Metric("penstock_commit_failures_total", "counter", _TOPIC, "Commits of a partition that the broker refused."),
        Metric(
            "penstock_lost_offsets_total",
            "counter",
            _TOPIC,
            "Offsets skipped because the log no longer had them: retention deleted them, or the topic was recreated.",
        ),
        Metric("penstock_errors_total", "counter", ("group", "fatal"), "Errors outside of handlers."),
        Metric("penstock_running_handlers", "gauge", ("group", "engine"), "Handlers and pipelines that are running."),
        # The local engine.
        Metric("penstock_retries_total", "counter", _TOPIC, "Failed attempts that are retried from memory."),
        Metric("penstock_postponed_records_total", "counter", _TOPIC, "Records sent to a retry topic."),
        Metric("penstock_delayed_records_total", "counter", _TOPIC, "How often a record was to wait for a later time."),
        Metric(
            "penstock_expired_records_total", "counter", _TOPIC, "Records that had expired before they were handled."
        ),
        Metric("penstock_duplicate_records_total", "counter", _TOPIC, "Records whose id was handled before."),
        Metric("penstock_stalled_records_total", "counter", _TOPIC, "Records that have been in progress for a minute."),
        Metric("penstock_overdue_records_total", "counter", _TOPIC, "Attempts on threads that passed their timeout."),
        Metric("penstock_hot_keys_total", "counter", _TOPIC, "How often most of the waiting records had the same key."),
        Metric("penstock_lost_partitions_total", "counter", _TOPIC, "Partitions lost without a chance to commit."),
        Metric("penstock_owned_partitions", "gauge", _TOPIC, "Partitions that this process owns."),
        Metric(
            "penstock_paused_partitions", "gauge", _TOPIC, "Partitions paused because enough records are in flight."
        ),
        Metric("penstock_in_flight", "gauge", _HANDLER, "Records that were fetched and are not finished."),
        Metric("penstock_lanes", "gauge", _HANDLER, "Lanes with records that wait or run."),
        Metric("penstock_works", "gauge", _HANDLER, "Bundles of records given to workers."),
        Metric("penstock_concurrency", "gauge", _HANDLER, "How many records or batches may run at once."),
        Metric("penstock_waiting_for_rate", "gauge", _HANDLER, "Records that could begin if their rate let them."),
        Metric(
            "penstock_recommended_members",
            "gauge",
            _HANDLER,
            "How many members the group should have, for an autoscaler.",
        ),
        Metric("penstock_open_breakers", "gauge", _HANDLER, "Members that a breaker pauses because records fail."),
        Metric(
            "penstock_longest_record_seconds", "gauge", _HANDLER, "How long the slowest record has been in progress."
        ),
        Metric("penstock_poll_age_seconds", "gauge", _HANDLER, "Seconds since the consumer was last polled."),
        Metric(
            "penstock_offset_map_bytes", "gauge", (*_TOPIC, "partition"), "Size of the offset map of the last commit."
        ),
        Metric("penstock_handler_seconds", "histogram", _HANDLER, "How long an attempt at a record takes."),
        Metric("penstock_commit_seconds", "histogram", _HANDLER, "How long the broker takes to accept a commit."),
        Metric(
            "penstock_rebalance_seconds",
            "histogram",
            _HANDLER,
            "Time from a start, a revoke or a loss to the next assignment.",
        ),
        # Spark.
        Metric("penstock_batch_seconds", "histogram", _HANDLER, "Duration of a slice, or of a pipeline's micro-batch."),
        Metric(
            "penstock_next_batch_records",
            "gauge",
            _HANDLER,
            "Maximum size of a pipeline's next micro-batch.",
        ),
        Metric(
            "penstock_failed_expectations_total",
            "counter",
            (*_HANDLER, "expectation"),
            "Rows of a pipeline that did not meet an expectation.",
        ),
        Metric(
            "penstock_late_rows_total",
            "counter",
            _HANDLER,
            "Rows of a pipeline that Spark dropped because they were below the watermark.",
        ),
        Metric("penstock_restarts_total", "counter", _HANDLER, "Restarts of slices and queries that failed."),
    )
}
