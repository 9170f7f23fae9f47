"""Divides a batch into tasks: by default one partition each, with ``scale="cpu"`` a share of all keys."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from penstock.app import Handler

# Keys are spread unevenly, so a core that finishes early can take another task.
_TASKS_PER_CORE = 2


def spread(source: DataFrame, handler: Handler) -> DataFrame:
    """Return the rows of a batch, divided into the handler's tasks.

    Divided by key, all records of a key are in one task; sorted there, they are in the order of their offsets.
    """
    if handler.scale == "partition":
        return source
    tasks = source.sparkSession.sparkContext.defaultParallelism * _TASKS_PER_CORE
    return source.repartition(tasks, *_divided_by(handler)).sortWithinPartitions("topic", "partition", "offset")


def _divided_by(handler: Handler) -> list[Column]:
    """Columns whose hash decides on the task. Not in turns: a task that is attempted again must get the same rows."""
    tp, offset, key = [sql.col("topic"), sql.col("partition")], sql.col("offset"), sql.col("key")
    if handler.order == "none":
        return [*tp, offset]
    # What has no key stays together only where it has an order.
    keyless = sql.concat_ws("/", *tp) if handler.null_keys_in_order else sql.concat_ws("/", *tp, offset)
    return [sql.coalesce(key, keyless.cast("binary"))]
