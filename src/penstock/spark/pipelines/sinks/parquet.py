"""Writes rows to Parquet files: a folder for each batch, which appears by one rename."""

from pyspark.sql import DataFrame

from penstock.app import Table
from penstock.app.pipelines import BatchId
from penstock.errors import ConfigError, ServerError
from penstock.spark.internals import HadoopFiles
from penstock.spark.pipelines.sinks.table_paths import table_folder

# Readers of the whole table see the batch as a column. They ignore folders that begin with an underscore.
_BATCH = "batch"
_DRAFTS = "_drafts"


class ParquetWriter:
    reads_twice = False

    def __init__(self, table: Table) -> None:
        self._table = table
        self._folder = table_folder(str(table.path), table.name)

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        if _BATCH in rows.columns:
            raise ConfigError(
                f"The rows for {self._table} have a column {_BATCH!r}, which names the folders of batches there.",
                hint="Give that column another name.",
            )
        files = HadoopFiles(rows.sparkSession, self._folder)
        draft, final = f"{self._folder}/{_DRAFTS}/{batch}", f"{self._folder}/{_BATCH}={batch}"
        if files.exists(final):
            return False
        rows.write.mode("overwrite").partitionBy(*self._table.partition_by).parquet(draft)
        if not files.move(draft, final):
            raise ServerError(f"{draft} could not be renamed to {final}.", hint="Check that the folder is writable.")
        return True
