"""Writes rows to PostgreSQL or SQLite: all rows of a batch, and a note about the batch, in one transaction.

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
from penstock.app.pipelines import BatchId
from penstock.errors import ConfigError
from penstock.spark.internals import jdbc_connection
from penstock.spark.pipelines.sinks.jdbc_dialects import DIALECTS, NOTES, ROW
from penstock.spark.pipelines.sinks.writer import newest
from penstock.spark.session.masters import is_local

_DRAFT = "penstock_draft_"
_TAG_LENGTH = 12


class JdbcWriter:
    def __init__(self, sink: Jdbc) -> None:
        self._sink = sink
        self._dialect = DIALECTS[sink.database]
        # Without an order column, rows are first searched for duplicate keys.
        self.reads_twice = sink.mode == "upsert"

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        session, sink = rows.sparkSession, self._sink
        self._refuse_cluster(session)
        if sink.mode == "upsert":
            rows = newest(rows, keys=sink.keys, order_by=sink.order_by, where=sink)
        with self._connection(session) as database:
            database.run(self._dialect.create_notes)
            if self._is_noted(database, batch):
                return False
            draft = self._make_draft(database, batch)
            self._fill(rows, draft)
            database.commit_all(self._publish(draft, rows.columns, batch))
        return True

    def _refuse_cluster(self, session: SparkSession) -> None:
        master = str(session.sparkContext.master)
        if self._dialect.is_file and not is_local(master):
            raise ConfigError(
                f"{self._sink} is a file on this machine, which the executors of {master!r} do not reach.",
                hint="Use --master 'local[*]', or a database with a server.",
            )

    def _is_noted(self, database: "_Database", batch: BatchId) -> bool:
        return database.has(
            f"SELECT 1 FROM {NOTES} WHERE pipeline = {_text(batch.pipeline)} "  # noqa: S608 - texts are quoted
            f"AND incarnation = {_text(batch.incarnation)} AND batch >= {batch.number}"
        )

    def _make_draft(self, database: "_Database", batch: BatchId) -> str:
        """Create an empty table like the target, and drop drafts that killed runs have left.

        Drops only drafts of the same checkpoint: a backfill of the pipeline may be running. Each draft has a new name,
        so tasks that outlive their driver fail to write to a dropped table.
        """
        of_this = f"{batch.pipeline} {batch.incarnation} {self._sink.table}"
        prefix = _DRAFT + hashlib.sha256(of_this.encode()).hexdigest()[:_TAG_LENGTH]
        for name in database.texts(self._dialect.find_drafts.format(prefix=_text(prefix))):
            database.run(f"DROP TABLE IF EXISTS {_name(name)}")
        draft = f"{prefix}_{uuid4().hex[:_TAG_LENGTH]}"
        for statement in self._dialect.make_draft:
            database.run(statement.format(draft=draft, table=self._sink.table))
        return draft

    def _fill(self, rows: DataFrame, draft: str) -> None:
        numbered = rows.withColumn(ROW, F.monotonically_increasing_id())
        writer = numbered.write.format("jdbc").mode("append").options(url=self._sink.url, dbtable=draft)
        writer.options(driver=self._dialect.driver, **self._dialect.write_options, **self._login()).save()

    def _publish(self, draft: str, columns: Sequence[str], batch: BatchId) -> list[str]:
        """Return the statements of the last transaction. The note is first: a second run of the batch fails there."""
        names = ", ".join(map(_name, columns))
        pipeline, incarnation, number = _text(batch.pipeline), _text(batch.incarnation), batch.number
        selected = f"SELECT {names} FROM {draft}{self._dialect.select_end}"  # noqa: S608
        older = f"pipeline = {pipeline} AND incarnation = {incarnation} AND batch < {number}"
        return [
            f"DELETE FROM {NOTES} WHERE {older}",  # noqa: S608
            f"INSERT INTO {NOTES} (pipeline, incarnation, batch) VALUES ({pipeline}, {incarnation}, {number})",  # noqa: S608
            f"INSERT INTO {self._sink.table} AS t ({names}) {selected}{self._on_conflict(columns)}",
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
        return {**self._dialect.properties, **{name: value for name, value in login.items() if value is not None}}

    @contextmanager
    def _connection(self, session: SparkSession) -> Iterator["_Database"]:
        """Connect through the driver's JVM, which already has the database's client."""
        with jdbc_connection(
            session, self._sink.url, driver=self._dialect.driver, properties=self._login()
        ) as connection:
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
