"""Writes rows to PostgreSQL: all rows of a batch, and a note about the batch, in one transaction.

Spark's tasks write to a draft table, each task in its own transaction. Rows are numbered, so a task that is repeated
after its commit fails instead of doubling its rows. Then one transaction of the driver notes the batch and copies the
draft inside the database.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Jdbc
from penstock.spark.internals import jdbc_connection
from penstock.spark.pipelines.sinks.writer import BatchId, newest

_DRIVER = "org.postgresql.Driver"
_NOTES = "penstock_batches"
_DRAFT = "penstock_draft_"
_ROW = "penstock_row"
_TAG_LENGTH = 12

_CREATE_NOTES = f"""
CREATE TABLE IF NOT EXISTS {_NOTES} (
    pipeline text NOT NULL, incarnation text NOT NULL, batch bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, incarnation)
)"""


class JdbcWriter:
    def __init__(self, sink: Jdbc) -> None:
        self._sink = sink
        # Without an order column, rows are first searched for duplicate keys.
        self.reads_twice = sink.mode == "upsert"

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        session, sink = rows.sparkSession, self._sink
        if sink.mode == "upsert":
            rows = newest(rows, keys=sink.keys, order_by=sink.order_by, where=sink)
        with self._connection(session) as database:
            database.run(_CREATE_NOTES)
            if self._is_noted(database, batch):
                return False
            draft = self._make_draft(database, batch)
            self._fill(rows, draft)
            database.commit_all(self._publish(draft, rows.columns, batch))
        return True

    def _is_noted(self, database: "_Database", batch: BatchId) -> bool:
        return database.has(
            f"SELECT 1 FROM {_NOTES} WHERE pipeline = {_text(batch.pipeline)} "  # noqa: S608 - texts are quoted
            f"AND incarnation = {_text(batch.incarnation)} AND batch >= {batch.number}"
        )

    def _make_draft(self, database: "_Database", batch: BatchId) -> str:
        """Create an empty table like the target, and drop drafts that killed runs have left.

        Drops only drafts of the same checkpoint: a backfill of the pipeline may be running. Each draft has a new name,
        so tasks that outlive their driver fail to write to a dropped table.
        """
        of_this = f"{batch.pipeline} {batch.incarnation} {self._sink.table}"
        prefix = _DRAFT + hashlib.sha256(of_this.encode()).hexdigest()[:_TAG_LENGTH]
        left = f"schemaname = current_schema() AND starts_with(tablename, {_text(prefix)})"
        for name in database.texts(f"SELECT tablename FROM pg_tables WHERE {left}"):  # noqa: S608
            database.run(f"DROP TABLE IF EXISTS {_name(name)}")
        draft = f"{prefix}_{uuid4().hex[:_TAG_LENGTH]}"
        database.run(f"CREATE UNLOGGED TABLE {draft} AS SELECT * FROM {self._sink.table} WITH NO DATA")  # noqa: S608
        database.run(f"ALTER TABLE {draft} ADD COLUMN {_ROW} bigint PRIMARY KEY")
        return draft

    def _fill(self, rows: DataFrame, draft: str) -> None:
        numbered = rows.withColumn(_ROW, F.monotonically_increasing_id())
        writer = numbered.write.format("jdbc").mode("append").options(url=self._sink.url, dbtable=draft, driver=_DRIVER)
        writer.options(**self._login()).save()

    def _publish(self, draft: str, columns: Sequence[str], batch: BatchId) -> list[str]:
        """Return the statements of the last transaction. The note is first: a second run of the batch fails there."""
        names = ", ".join(map(_name, columns))
        pipeline, incarnation, number = _text(batch.pipeline), _text(batch.incarnation), batch.number
        older = f"pipeline = {pipeline} AND incarnation = {incarnation} AND batch < {number}"
        return [
            f"DELETE FROM {_NOTES} WHERE {older}",  # noqa: S608
            f"INSERT INTO {_NOTES} (pipeline, incarnation, batch) VALUES ({pipeline}, {incarnation}, {number})",  # noqa: S608
            f"INSERT INTO {self._sink.table} AS t ({names}) SELECT {names} FROM {draft}{self._on_conflict(columns)}",  # noqa: S608
            f"DROP TABLE {draft}",
        ]

    def _on_conflict(self, columns: Sequence[str]) -> str:
        sink = self._sink
        if sink.mode == "append":
            return ""
        sets = ", ".join(f"{_name(each)} = excluded.{_name(each)}" for each in columns if each not in sink.keys)
        keys = ", ".join(map(_name, sink.keys))
        if not sets:
            return f" ON CONFLICT ({keys}) DO NOTHING"
        newer = ""
        if sink.order_by is not None:
            order = _name(sink.order_by)
            newer = f" WHERE t.{order} IS NULL OR excluded.{order} >= t.{order}"
        return f" ON CONFLICT ({keys}) DO UPDATE SET {sets}{newer}"

    def _login(self) -> dict[str, str]:
        login = {"user": self._sink.user, "password": self._sink.password}
        # Lets text columns be written to other types, such as uuid and jsonb.
        return {"stringtype": "unspecified", **{name: value for name, value in login.items() if value is not None}}

    @contextmanager
    def _connection(self, session: SparkSession) -> Iterator["_Database"]:
        """Connect through the driver's JVM, which already has the database's client."""
        with jdbc_connection(session, self._sink.url, driver=_DRIVER, properties=self._login()) as connection:
            yield _Database(connection)


class _Database:
    """Runs statements on a JDBC connection, one after the other."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, sql: str) -> None:
        statement = self._connection.createStatement()
        try:
            statement.execute(sql)
        finally:
            statement.close()

    def has(self, sql: str) -> bool:
        return bool(self.texts(sql))

    def texts(self, sql: str) -> list[str]:
        """Return the first column of all rows."""
        statement = self._connection.createStatement()
        try:
            found, texts = statement.executeQuery(sql), []
            while found.next():
                texts.append(str(found.getString(1)))
            return texts
        finally:
            statement.close()

    def commit_all(self, statements: Sequence[str]) -> None:
        self._connection.setAutoCommit(False)
        try:
            for sql in statements:
                self.run(sql)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            self._connection.setAutoCommit(True)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
