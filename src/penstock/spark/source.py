"""Spark's Kafka source and sink, with the options that the guarantees need."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from penstock.app import Handler
from penstock.spark.columns import SOURCE_COLUMNS
from penstock.spark.offsets import Offsets, to_json
from penstock.spark.session.java_client_settings import java_settings


def client_options(brokers: str, settings: Mapping[str, object]) -> dict[str, str]:
    """The Kafka clients' own settings, as Spark's source and sink take them."""
    chosen = {"bootstrap.servers": brokers, **java_settings(settings)}
    return {f"kafka.{name}": value for name, value in chosen.items()}


def reading_options(clients: Mapping[str, str]) -> dict[str, str]:
    """What every source of ours reads with; ``clients`` are the user's own settings."""
    return {
        # As the local engine's client has it: records of an aborted transaction do not exist.
        "kafka.isolation.level": "read_committed",
        # After each fetch Spark asks for the log's bounds on the same connection, which the broker answers in order. At
        # the log's end that is when the fetch after it has waited in vain: half a second of each task, by default.
        "kafka.fetch.max.wait.ms": "10",
        **clients,
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def source_options(handler: Handler, clients: Mapping[str, str], start: Offsets, *, size: int) -> dict[str, str]:
    """``size`` is how many offsets a batch may take at first."""
    return {
        **reading_options(clients),
        **_subscription(handler),
        "startingOffsets": to_json(start),
        "maxOffsetsPerTrigger": str(size),
    }


def _subscription(handler: Handler) -> dict[str, str]:
    if handler.pattern is not None:
        # Over whole names, and never for internal topics, as ``Handler.consumes`` has it.
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
    """Written as the local engine writes."""
    return {"kafka.linger.ms": "5", "kafka.compression.type": "lz4", **clients, "kafka.acks": "all"}
