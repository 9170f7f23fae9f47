"""Writes rows to Kafka: as they are, or as JSON."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StringType

from penstock.app import Topic
from penstock.app.pipelines import META_COLUMNS, BatchId
from penstock.errors import ConfigError

_AS_THEY_ARE = frozenset({"key", "value", "headers", "topic", "partition"})


class KafkaWriter:
    reads_twice = False

    def __init__(self, topic: Topic, options: Mapping[str, str]) -> None:
        self._topic = topic
        self._options = options

    def write(self, rows: DataFrame, batch: BatchId) -> bool:  # noqa: ARG002 - Kafka cannot recognise a batch
        kafka_rows(rows, self._topic).write.format("kafka").options(**self._options).save()
        return True


def kafka_rows(rows: DataFrame, topic: Topic) -> DataFrame:
    """Return the rows with the columns that Spark's Kafka writer accepts."""
    if _is_for_kafka(rows):
        if topic.key is not None:
            rows = rows.withColumn("key", _bytes(rows, topic.key))
        return rows if "topic" in rows.columns else rows.withColumn("topic", F.lit(topic.name))
    fields = [name for name in rows.columns if name not in META_COLUMNS]
    key = topic.key or ("_key" if "_key" in rows.columns else None)
    return rows.select(
        F.lit(topic.name).alias("topic"),
        (F.lit(None).cast("binary") if key is None else _bytes(rows, key)).alias("key"),
        F.to_json(F.struct(*(F.col(f"`{name}`") for name in fields))).cast("binary").alias("value"),
    )


def _is_for_kafka(rows: DataFrame) -> bool:
    names = {name for name in rows.columns if name not in META_COLUMNS}
    return (
        "value" in names
        and names <= _AS_THEY_ARE
        and isinstance(rows.schema["value"].dataType, StringType | BinaryType)
    )


def _bytes(rows: DataFrame, column: str) -> Column:
    if column not in rows.columns:
        raise ConfigError(
            f"The rows have no column {column!r} for the key.", hint=f"They have {', '.join(rows.columns)}."
        )
    kept = isinstance(rows.schema[column].dataType, BinaryType)
    return F.col(f"`{column}`") if kept else F.col(f"`{column}`").cast("string").cast("binary")
