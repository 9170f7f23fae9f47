"""Spark's Kafka source and sink, with the options that the guarantees need."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from penstock.app import Handler
from penstock.spark.columns import SOURCE_COLUMNS
from penstock.spark.offsets import Offsets, to_json
from penstock.spark.settings import java_settings

# A batch is short, so that progress, commits and stops come often, and long enough that the 0.3 s it costs do not show:
# by default 50,000 records, which a quick handler is through with in a second.
_BATCH_PER_IN_FLIGHT = 5


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
        "maxOffsetsPerTrigger": str(_BATCH_PER_IN_FLIGHT * handler.max_in_flight),
    }


def read_source(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    return session.readStream.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)


def sink_options(clients: Mapping[str, str]) -> dict[str, str]:
    """Written as the local engine writes."""
    return {"kafka.linger.ms": "5", "kafka.compression.type": "lz4", **clients, "kafka.acks": "all"}
