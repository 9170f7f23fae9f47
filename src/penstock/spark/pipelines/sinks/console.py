"""Prints rows on the terminal."""

import sys

from pyspark.sql import DataFrame

from penstock.app import Console
from penstock.app.pipelines import BatchId
from penstock.core.text.foreign_text import printable_block
from penstock.spark.internals import table_text


class ConsoleWriter:
    reads_twice = True

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, rows: DataFrame, batch: BatchId) -> bool:  # noqa: ARG002
        rows.count()  # makes Spark compute and count all rows, not only those that are shown
        sys.stdout.write(printable_block(table_text(rows, self._console.rows)) + "\n\n")
        sys.stdout.flush()
        return True
