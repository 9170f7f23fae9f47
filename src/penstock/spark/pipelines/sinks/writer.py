"""Shared by all sinks: what a writer is, the last row of each key, and new columns of a table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField

from penstock.app import Table
from penstock.app.pipelines import BatchId
from penstock.errors import ConfigError, HandlerError
from penstock.spark.internals import collect_json

# If rows still have these columns of their records, these say which row is the last.
_RECORD_ORDER = ("_timestamp", "_partition", "_offset")
_RANK = "__penstock_rank"


class Writer(Protocol):
    reads_twice: bool
    """Whether ``write`` reads the rows more than once; then the caller caches them."""

    def write(self, rows: DataFrame, batch: BatchId) -> bool:
        """Write all rows to the sink; False if the sink already had this batch."""
        ...


def newest(rows: DataFrame, *, keys: Sequence[str], order_by: str | None, where: object) -> DataFrame:
    """Return the last row of each key, by the order column or by the record's timestamp, partition and offset."""
    _require(rows, [*keys, *([order_by] if order_by else [])], where)
    order = [order_by] if order_by else [name for name in _RECORD_ORDER if name in rows.columns]
    if not order:
        refuse_duplicates(rows, keys, where)
        return rows
    last = Window.partitionBy(*keys).orderBy(*(F.col(name).desc_nulls_last() for name in order))
    return rows.withColumn(_RANK, F.row_number().over(last)).filter(F.col(_RANK) == 1).drop(_RANK)


def refuse_duplicates(rows: DataFrame, keys: Sequence[str], where: object) -> None:
    duplicates = rows.groupBy(*keys).agg(F.count(F.lit(1)).alias("rows")).filter("rows > 1").limit(1)
    for found in collect_json(duplicates):
        raise HandlerError(
            f"A batch has several rows for one key of {where}, and no column says which is the last: {found}.",
            hint="Name such a column with order_by=..., or keep _timestamp and _offset in the rows.",
        )


def merge_sql(table: Table, target: str, source: str, columns: Sequence[str]) -> str:
    on = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in table.keys)
    newer = ""
    if table.order_by is not None:
        order = quoted(table.order_by)
        newer = f" AND (t.{order} IS NULL OR s.{order} >= t.{order})"
    sets = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in columns)
    names = ", ".join(quoted(name) for name in columns)
    values = ", ".join(f"s.{quoted(name)}" for name in columns)
    return (
        f"MERGE INTO {target} t USING {source} s ON {on} "  # noqa: S608 - names are quoted
        f"WHEN MATCHED{newer} THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
    )


def evolved(rows: DataFrame, target: str) -> DataFrame:
    """Add the columns to the table that only the rows have, and to the rows, as null, those that only it has.

    A repeated batch finds the columns already there.
    """
    table = rows.sparkSession.table(target)
    if added := _only_in(rows, table):
        columns = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in added)
        rows.sparkSession.sql(f"ALTER TABLE {target} ADD COLUMNS ({columns})")
    missing = {field.name: F.lit(None).cast(field.dataType) for field in _only_in(table, rows)}
    return rows.withColumns(missing) if missing else rows


@contextmanager
def new_columns_explained(rows: DataFrame, target: str, table: Table) -> Iterator[None]:
    """In the block, where Spark refuses the rows because of new columns, raise an error that says what to do."""
    try:
        yield
    except AnalysisException as error:
        new = [] if table.evolve else _new_columns(rows, target)
        if not new:
            raise
        raise ConfigError(
            f"The rows for {table} have columns that it has not: {', '.join(field.name for field in new)}.",
            hint="Add the columns to the table, or let Penstock do that: Table(..., evolve=True).",
        ) from error


def _new_columns(rows: DataFrame, target: str) -> list[StructField]:
    try:
        return _only_in(rows, rows.sparkSession.table(target))
    except AnalysisException:  # there is no table yet
        return []


def _only_in(rows: DataFrame, others: DataFrame) -> list[StructField]:
    """Return the columns that the others lack. Spark does not distinguish cases in names."""
    known = {name.lower() for name in others.columns}
    return [field for field in rows.schema.fields if field.name.lower() not in known]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _require(rows: DataFrame, columns: Sequence[str], where: object) -> None:
    for name in columns:
        if name not in rows.columns:
            raise ConfigError(
                f"The rows for {where} have no column {name!r}.", hint=f"They have {', '.join(rows.columns)}."
            )
