"""Reads the tables that pipelines wrote."""

import json
from typing import Any

from pyspark.sql import DataFrame


def rows(table: DataFrame) -> list[dict[str, Any]]:
    """Read the rows in the JVM: PySpark collects rows through sockets, and closes them only in garbage collection."""
    return [json.loads(text) for text in table._jdf.toJSON().collectAsList()]
