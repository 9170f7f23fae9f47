"""Writes rows to Delta Lake."""

import math

from pyspark.sql import DataFrame, SparkSession

from penstock.app import Table
from penstock.app.pipelines import BatchId
from penstock.spark.internals import HadoopFiles
from penstock.spark.pipelines.sinks.table_paths import table_folder
from penstock.spark.pipelines.sinks.writer import evolved, merge_sql, new_columns_explained, newest, quoted

_VIEW = "penstock_rows"
_HOUR = 3600.0


class DeltaWriter:
    """An append passes the batch's id to Delta, which skips a batch that it has. Repeating a merge changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._folder = table_folder(str(table.path), table.name)
        self.reads_twice = table.mode == "upsert"

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        if self._table.evolve and self._exists(rows.sparkSession):
            rows = evolved(rows, self._target)
        with new_columns_explained(rows, self._target, self._table):
            if self._table.mode == "upsert":
                self._merge(rows)
            else:
                self._append(rows, batch)
        return True

    def _append(self, rows: DataFrame, batch: BatchId) -> None:
        (
            rows.write.format("delta")
            .mode("append")
            .partitionBy(*self._table.partition_by)
            .option("txnAppId", batch.incarnation)
            .option("txnVersion", batch.number)
            .save(self._folder)
        )

    def _merge(self, rows: DataFrame) -> None:
        session, table = rows.sparkSession, self._table
        if not self._exists(session):
            rows.limit(0).write.format("delta").partitionBy(*table.partition_by).save(self._folder)
        newest(rows, keys=table.keys, order_by=table.order_by, where=table).createOrReplaceTempView(_VIEW)
        session.sql(merge_sql(table, self._target, _VIEW, rows.columns))

    def maintain(self, session: SparkSession, *, keep: float) -> None:
        session.sql(f"OPTIMIZE {self._target}")
        session.sql(f"VACUUM {self._target} RETAIN {math.ceil(keep / _HOUR)} HOURS")

    @property
    def _target(self) -> str:
        return f"delta.{quoted(self._folder)}"

    def _exists(self, session: SparkSession) -> bool:
        return HadoopFiles(session, self._folder).exists(f"{self._folder}/_delta_log")
