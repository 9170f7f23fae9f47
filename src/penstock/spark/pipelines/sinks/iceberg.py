"""Writes rows to Iceberg."""

import hashlib

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Table
from penstock.spark.pipelines.sinks.table_paths import absolute
from penstock.spark.pipelines.sinks.writer import BatchId, merge_sql, newest, quoted

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_TAG_LENGTH = 8
_VIEW = "penstock_rows"
_MARK = "penstock.batch"


class IcebergWriter:
    """An append writes the batch's id into its snapshot. Repeating a merge changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.reads_twice = table.mode == "upsert"

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        target = self._target(rows.sparkSession)
        if not rows.sparkSession.catalog.tableExists(target):
            self._create(rows, target)
        if self._table.mode == "upsert":
            table = self._table
            newest(rows, keys=table.keys, order_by=table.order_by, where=table).createOrReplaceTempView(_VIEW)
            rows.sparkSession.sql(merge_sql(table, target, _VIEW, rows.columns))
            return True
        if _has(rows.sparkSession, target, batch):
            return False
        rows.writeTo(target).option(f"snapshot-property.{_MARK}", str(batch)).append()
        return True

    def _target(self, session: SparkSession) -> str:
        """Return the table's full name. Adds its catalog to the session."""
        catalog = self._table.catalog
        if catalog is None:
            warehouse = absolute(str(self._table.path))
            catalog = f"penstock_{hashlib.sha256(warehouse.encode()).hexdigest()[:_TAG_LENGTH]}"
            session.conf.set(f"spark.sql.catalog.{catalog}", _CATALOG)
            session.conf.set(f"spark.sql.catalog.{catalog}.type", "hadoop")
            session.conf.set(f"spark.sql.catalog.{catalog}.warehouse", warehouse)
            # See what other processes have written.
            session.conf.set(f"spark.sql.catalog.{catalog}.cache-enabled", "false")
        return ".".join([catalog, *map(quoted, self._table.name.split("."))])

    def _create(self, rows: DataFrame, target: str) -> None:
        writer = rows.limit(0).writeTo(target).using("iceberg")
        columns = [F.col(name) for name in self._table.partition_by]
        (writer.partitionedBy(columns[0], *columns[1:]) if columns else writer).create()


def _has(session: SparkSession, target: str, batch: BatchId) -> bool:
    """Whether a snapshot of the table was made by this batch."""
    snapshots = session.table(f"{target}.snapshots")
    return not snapshots.filter(F.col("summary")[_MARK] == str(batch)).isEmpty()
