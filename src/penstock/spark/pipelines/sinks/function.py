"""Calls the user's function with the rows and the id of each batch."""

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.app import ForeachBatch
from penstock.app.pipelines import BatchId
from penstock.core.settings import redacted
from penstock.errors import HandlerError, PenstockError
from penstock.spark.internals import JvmError


class BatchFunctionError(HandlerError):
    """The user's function raised an exception. What it writes to may answer again later, so the batch is repeated."""


class FunctionWriter:
    reads_twice = True

    def __init__(self, sink: ForeachBatch) -> None:
        self._sink = sink

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        try:
            self._sink.function(rows, batch)
        except (PenstockError, PySparkException, JvmError):
            raise
        except Exception as error:
            raise BatchFunctionError(
                f"The {self._sink} raised {redacted(f'{type(error).__name__}: {error}')} in batch {batch}.",
                hint="Fix the function or what it writes to, then start again: the batch is repeated with the same id.",
            ) from error
        return True
