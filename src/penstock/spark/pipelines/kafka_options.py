"""Spark's Kafka source and sink, with the options that the guarantees need."""

from collections.abc import Mapping

from penstock.spark.pipelines.java_client_settings import java_settings


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


def sink_options(clients: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the sink; the same as those of the local engine's producer."""
    return {"kafka.linger.ms": "5", "kafka.compression.type": "lz4", **clients, "kafka.acks": "all"}
