"""The writers of the sinks. Each writes a batch, and most recognise a batch that they have written before."""

from collections.abc import Callable, Mapping
from typing import assert_never

from pyspark.sql import SparkSession

from penstock.app import Console, ForeachBatch, Jdbc, Sink, Table, Topic
from penstock.spark.pipelines.sinks.console import ConsoleWriter
from penstock.spark.pipelines.sinks.delta import DeltaWriter
from penstock.spark.pipelines.sinks.function import FunctionWriter
from penstock.spark.pipelines.sinks.iceberg import IcebergWriter
from penstock.spark.pipelines.sinks.jdbc import JdbcWriter
from penstock.spark.pipelines.sinks.kafka import KafkaWriter
from penstock.spark.pipelines.sinks.parquet import ParquetWriter
from penstock.spark.pipelines.sinks.writer import Writer

__all__ = ["Writer", "maintain", "writer_for"]

_OF_TABLES: Mapping[str, Callable[[Table], Writer]] = {
    "delta": DeltaWriter,
    "iceberg": IcebergWriter,
    "parquet": ParquetWriter,
}
_MAINTAINED: Mapping[str, Callable[[Table], DeltaWriter | IcebergWriter]] = {
    "delta": DeltaWriter,
    "iceberg": IcebergWriter,
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
        case ForeachBatch():
            return FunctionWriter(sink)
        case Console():
            return ConsoleWriter(sink)
        case _:
            assert_never(sink)


def maintain(table: Table, session: SparkSession) -> None:
    """Compact the table's small files, and delete files and snapshots that are no longer needed."""
    assert table.maintenance is not None  # noqa: S101 - the caller asks for tables with maintenance only
    _MAINTAINED[table.format](table).maintain(session, keep=table.maintenance.keep_seconds)
