"""Shared by all sinks: the id of a batch, and the last row of each key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Table
from penstock.errors import ConfigError, HandlerError
from penstock.spark.internals import collect_json

# If rows still have these columns of their records, these say which row is the last.
_RECORD_ORDER = ("_timestamp", "_partition", "_offset")
_RANK = "__penstock_rank"


@dataclass(frozen=True)
class BatchId:
    """The id of a batch, by which sinks recognise a batch that they have.

    The number alone is not enough: a new checkpoint starts again at 0, with other records. ``incarnation`` is the id of
    the checkpoint, or of a backfill.
    """

    pipeline: str
    incarnation: str
    number: int

    def __str__(self) -> str:
        return f"{self.incarnation}-{self.number}"


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


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _require(rows: DataFrame, columns: Sequence[str], where: object) -> None:
    for name in columns:
        if name not in rows.columns:
            raise ConfigError(
                f"The rows for {where} have no column {name!r}.", hint=f"They have {', '.join(rows.columns)}."
            )
