"""Spark's Kafka source and sink, with the options that the guarantees need."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from penstock.app import Handler
from penstock.spark.columns import SOURCE_COLUMNS
from penstock.spark.offsets import Offsets, to_json
from penstock.spark.settings import java_settings

# Short batches, so that progress, commits and stops come often; long enough that what each costs does not show.
MAX_RECORDS_PER_BATCH = 50_000


def client_options(brokers: str, settings: Mapping[str, object]) -> dict[str, str]:
    """The Kafka clients' own settings, as Spark's source and sink take them."""
    chosen = {"bootstrap.servers": brokers, **java_settings(settings)}
    return {f"kafka.{name}": value for name, value in chosen.items()}


def source_options(handler: Handler, clients: Mapping[str, str], start: Offsets) -> dict[str, str]:
    return {
        # As the local engine's client has it: records of an aborted transaction do not exist.
        "kafka.isolation.level": "read_committed",
        **clients,
        "subscribe": ",".join(handler.topics),
        "startingOffsets": to_json(start),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(MAX_RECORDS_PER_BATCH),
    }


def read_source(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    return session.readStream.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)


def sink_options(clients: Mapping[str, str]) -> dict[str, str]:
    """Written as the local engine writes."""
    return {"kafka.linger.ms": "5", "kafka.compression.type": "lz4", **clients, "kafka.acks": "all"}
