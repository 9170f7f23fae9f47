"""One pipeline with two outputs: `penstock run revenue:app --engine spark`.

It writes the revenue per minute to a topic, and every sale to a table.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from penstock import App, Table, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

app = App("revenue")


@dataclass
class Sale:
    id: int
    customer: str
    amount: float
    at: datetime
    currency: str = "EUR"


@app.pipeline(
    "sales",
    value=Sale,
    dead_letter="sales.dlq",
    expect={"amount > 0": "dead_letter"},
    to={
        "minutes": Topic("revenue", key="currency"),
        "sales": Table("sales", path=os.environ.get("LAKE", "lake"), partition_by=["currency"]),
    },
)
def revenue(sales: "DataFrame") -> "Mapping[str, DataFrame]":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the module itself must not need Spark

    minutes = sales.withWatermark("at", "30 seconds").groupBy(F.window("at", "1 minute"), "currency")
    return {
        "minutes": minutes.agg(F.sum("amount").alias("total")).selectExpr(
            "window.start AS minute", "currency", "total"
        ),
        "sales": sales.select("id", "customer", "amount", "at", "currency"),
    }
