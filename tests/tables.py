"""Reads what pipelines wrote to tables."""

import json
from typing import Any

from pyspark.sql import DataFrame


def rows(table: DataFrame) -> list[dict[str, Any]]:
    """By the JVM itself, as PySpark leaves the sockets that it collects through to the garbage collector."""
    return [json.loads(text) for text in table._jdf.toJSON().collectAsList()]
