"""Spark's Kafka source and sink, with the options that the guarantees need."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from penstock.app import Handler
from penstock.spark.arrow_columns import SOURCE_COLUMNS
from penstock.spark.resume_offsets import Offsets, to_json
from penstock.spark.session.java_client_settings import java_settings


def client_options(brokers: str, settings: Mapping[str, object]) -> dict[str, str]:
    """Return the Kafka clients' settings as options of Spark's source and sink."""
    chosen = {"bootstrap.servers": brokers, **java_settings(settings)}
    return {f"kafka.{name}": value for name, value in chosen.items()}


def reading_options(clients: Mapping[str, str]) -> dict[str, str]:
    """Return the options of every source. ``clients`` are the user's settings."""
    return {
        # As in the local engine: no records of aborted transactions.
        "kafka.isolation.level": "read_committed",
        # After each fetch Spark requests the log's start and end on the connection that already has the next fetch, and
        # a broker answers in order. At the end of the log that fetch waits for this long: by default half a second of
        # each task.
        "kafka.fetch.max.wait.ms": "10",
        **clients,
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def source_options(handler: Handler, clients: Mapping[str, str], start: Offsets, *, size: int) -> dict[str, str]:
    """Return the options of a handler's source. The first batch takes up to ``size`` offsets."""
    return {
        **reading_options(clients),
        **_subscription(handler),
        "startingOffsets": to_json(start),
        "maxOffsetsPerTrigger": str(size),
    }


def _subscription(handler: Handler) -> dict[str, str]:
    if handler.pattern is not None:
        # Matches whole names and no internal topics, like ``Handler.consumes``.
        return {"subscribePattern": f"^(?!__)(?:{handler.pattern})$"}
    if handler.partitions:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in handler.partitions:
            by_topic.setdefault(topic, []).append(partition)
        return {"assign": json.dumps(by_topic)}
    return {"subscribe": ",".join(handler.topics)}


def read_source(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    return session.readStream.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)


def sink_options(clients: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the sink; the same as those of the local engine's producer."""
    return {"kafka.linger.ms": "5", "kafka.compression.type": "lz4", **clients, "kafka.acks": "all"}
