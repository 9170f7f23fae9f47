"""Counts clicks per page and minute into a Delta table: `penstock run clicks:app --engine spark`.

A click may arrive up to a minute late. A window is written once, when no click for it can come any more.
"""

import os
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from penstock import App, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

app = App("clickstream")


@dataclass
class Click:
    user: str
    page: str
    at: datetime


def per_minute(clicks: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the module itself must not need Spark

    windows = clicks.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"), "page")
    counts = windows.agg(F.count("*").alias("clicks"), F.approx_count_distinct("user").alias("users"))
    return counts.selectExpr("window.start AS minute", "page", "clicks", "users")


@app.pipeline(
    "clicks",
    value=Click,
    dead_letter="clicks.dlq",
    expect={"page LIKE '/%'": "dead_letter"},
    to=Table("clicks_per_minute", path=os.environ.get("LAKE", "lake"), format="delta"),
)
def count(clicks: "DataFrame") -> "DataFrame":
    return per_minute(clicks)
