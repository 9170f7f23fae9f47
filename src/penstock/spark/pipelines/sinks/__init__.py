"""The writers of the sinks. Each writes a batch, and most recognise a batch that they have written before."""

from collections.abc import Callable, Mapping
from typing import assert_never

from penstock.app import Console, Jdbc, Sink, Table, Topic
from penstock.spark.pipelines.sinks.console import ConsoleWriter
from penstock.spark.pipelines.sinks.delta import DeltaWriter
from penstock.spark.pipelines.sinks.iceberg import IcebergWriter
from penstock.spark.pipelines.sinks.jdbc import JdbcWriter
from penstock.spark.pipelines.sinks.kafka import KafkaWriter
from penstock.spark.pipelines.sinks.parquet import ParquetWriter
from penstock.spark.pipelines.sinks.writer import BatchId, Writer

__all__ = ["BatchId", "Writer", "writer_for"]

_OF_TABLES: Mapping[str, Callable[[Table], Writer]] = {
    "delta": DeltaWriter,
    "iceberg": IcebergWriter,
    "parquet": ParquetWriter,
}


def writer_for(sink: Sink, clients: Mapping[str, str]) -> Writer:
    """``clients`` are the options of Spark's Kafka writer."""
    match sink:
        case Topic():
            return KafkaWriter(sink, clients)
        case Table():
            return _OF_TABLES[sink.format](sink)
        case Jdbc():
            return JdbcWriter(sink)
        case Console():
            return ConsoleWriter(sink)
        case _:
            assert_never(sink)
