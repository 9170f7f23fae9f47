"""Keeps a table of customers as a change log says it: `penstock run customers_table:app --engine spark`.

Each record is one change of one row, as a database publishes it. The table is in Iceberg, with one row per customer.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock import App, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

app = App("customers-table")


@dataclass
class Change:
    id: int
    version: int
    name: str = ""
    city: str = ""
    deleted: bool = False


@app.pipeline(
    "customers.changes",
    value=Change,
    dead_letter="customers.changes.dlq",
    to=Table(
        "shop.customers",
        path=os.environ.get("LAKE", "lake"),
        format="iceberg",
        mode="upsert",
        keys=["id"],
        order_by="version",  # an older change never replaces a newer one
    ),
)
def customers(changes: "DataFrame") -> "DataFrame":
    return changes.select("id", "version", "name", "city", "deleted")
