"""Writes rows to Iceberg."""

import hashlib
import time
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Table
from penstock.app.pipelines import BatchId
from penstock.spark.pipelines.sinks.table_paths import absolute
from penstock.spark.pipelines.sinks.writer import evolved, merge_sql, new_columns_explained, newest, quoted

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_TAG_LENGTH = 8
_VIEW = "penstock_rows"
_MARK = "penstock.batch"
_now = time.time


class IcebergWriter:
    """An append writes the batch's id into its snapshot. Repeating a merge changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.reads_twice = table.mode == "upsert"

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        target = self._target(rows.sparkSession)
        if not rows.sparkSession.catalog.tableExists(target):
            self._create(rows, target)
        elif self._table.evolve:
            rows = evolved(rows, target)
        with new_columns_explained(rows, target, self._table):
            if self._table.mode == "upsert":
                self._merge(rows, target)
                return True
            if _has(rows.sparkSession, target, batch):
                return False
            rows.writeTo(target).option(f"snapshot-property.{_MARK}", str(batch)).append()
        return True

    def _merge(self, rows: DataFrame, target: str) -> None:
        table = self._table
        newest(rows, keys=table.keys, order_by=table.order_by, where=table).createOrReplaceTempView(_VIEW)
        rows.sparkSession.sql(merge_sql(table, target, _VIEW, rows.columns))

    def maintain(self, session: SparkSession, *, keep: float) -> None:
        """Compact, then expire snapshots; that of the batch just written is younger than ``keep``, so its id stays."""
        catalog, _, table = self._target(session).partition(".")
        before = datetime.fromtimestamp(_now() - keep, UTC).isoformat(sep=" ", timespec="seconds")
        session.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}')")
        session.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '{before}')")

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
