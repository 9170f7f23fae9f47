"""Writes rows to Delta Lake."""

from pyspark.sql import DataFrame

from penstock.app import Table
from penstock.spark.internals import HadoopFiles
from penstock.spark.pipelines.sinks.table_paths import table_folder
from penstock.spark.pipelines.sinks.writer import BatchId, merge_sql, newest, quoted

_VIEW = "penstock_rows"


class DeltaWriter:
    """An append passes the batch's id to Delta, which skips a batch that it has. Repeating a merge changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._folder = table_folder(str(table.path), table.name)
        self.reads_twice = table.mode == "upsert"

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        if self._table.mode == "upsert":
            self._merge(rows)
            return True
        (
            rows.write.format("delta")
            .mode("append")
            .partitionBy(*self._table.partition_by)
            .option("txnAppId", batch.incarnation)
            .option("txnVersion", batch.number)
            .save(self._folder)
        )
        return True

    def _merge(self, rows: DataFrame) -> None:
        session, table = rows.sparkSession, self._table
        if not HadoopFiles(session, self._folder).exists(f"{self._folder}/_delta_log"):
            rows.limit(0).write.format("delta").partitionBy(*table.partition_by).save(self._folder)
        newest(rows, keys=table.keys, order_by=table.order_by, where=table).createOrReplaceTempView(_VIEW)
        session.sql(merge_sql(table, f"delta.{quoted(self._folder)}", _VIEW, rows.columns))
