"""What becomes a task: by default the stretch of one partition, with ``scale="cpu"`` a share of all keys."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from penstock.app import Handler

# Keys fall unevenly, so a core that is through early finds another task to take.
_TASKS_PER_CORE = 2


def spread(source: DataFrame, handler: Handler) -> DataFrame:
    """The rows of a batch as the handler's tasks get them.

    Divided by key, all records of a key are in one task; sorted there, they are in the order of their offsets.
    """
    if handler.scale == "partition":
        return source
    tasks = source.sparkSession.sparkContext.defaultParallelism * _TASKS_PER_CORE
    return source.repartition(tasks, *_divided_by(handler)).sortWithinPartitions("topic", "partition", "offset")


def _divided_by(handler: Handler) -> list[Column]:
    """Columns whose hash decides on the task. Not in turns: a task that is attempted again must get the same rows."""
    place, offset, key = [sql.col("topic"), sql.col("partition")], sql.col("offset"), sql.col("key")
    if handler.order == "none":
        return [*place, offset]
    # What has no key stays together only where it has an order.
    keyless = sql.concat_ws("/", *place) if handler.null_keys_in_order else sql.concat_ws("/", *place, offset)
    return [sql.coalesce(key, keyless.cast("binary"))]
