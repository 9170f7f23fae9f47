"""Rows on the terminal."""

import sys

from pyspark.sql import DataFrame

from penstock.app import Console
from penstock.core.text.foreign_text import printable_block
from penstock.spark.pipelines.sinks.writer import BatchId


class ConsoleWriter:
    reads_twice = True

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, rows: DataFrame, batch: BatchId) -> bool:  # noqa: ARG002
        rows.count()  # so that all of them are made, and counted, and not only those that are shown
        # As `show` prints it, which leaves most control characters of the rows as they are.
        table = rows._jdf.showString(self._console.rows, 0, False)  # noqa: FBT003, SLF001
        sys.stdout.write(printable_block(table) + "\n\n")
        sys.stdout.flush()
        return True
