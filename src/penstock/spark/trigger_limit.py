"""How many offsets the next batches of a query may take, set while it runs."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery


def set_limit(query: StreamingQuery, size: int) -> bool:
    """Let the next batches take up to so many offsets of each source. False where this Spark does not let us.

    Spark reads ``maxOffsetsPerTrigger`` once, and from then on keeps the limit beside its source, where the stream
    thread looks it up for each batch. There it is replaced. That place is none of Spark's promises, hence the answer.
    Only the stream thread itself may call this: at its start it makes that place, and would meet a copy from before.
    """
    try:
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - PySpark's own way to Java
        execution: Any = query._jsq.streamingQuery()  # noqa: SLF001
        limits = execution.uniqueSources()
        limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(size)
        sources = limits.keysIterator()
        while sources.hasNext():
            limits = limits.updated(sources.next(), limit)
        getattr(execution, "uniqueSources_$eq")(limits)
    except (Py4JError, AttributeError, TypeError):
        return False
    return True
