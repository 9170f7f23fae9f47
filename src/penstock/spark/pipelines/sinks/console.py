"""Rows on the terminal."""

from pyspark.sql import DataFrame

from penstock.app import Console
from penstock.spark.pipelines.sinks.writing import BatchId


class ConsoleWriter:
    reads_twice = True

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, rows: DataFrame, batch: BatchId) -> bool:  # noqa: ARG002
        rows.count()  # so that all of them are made, and counted, and not only those that are shown
        rows.show(self._console.rows, truncate=False)
        return True
