"""Books transfers into PostgreSQL, each exactly once: `LEDGER=postgresql://me@db/bank penstock run ledger:app`.

The rows of a transfer and the offset of its record are in one transaction of the database.
"""

import os
from dataclasses import dataclass

from sqlalchemy import Connection, text

from penstock import App, Reject

app = App("ledger")

CREATE = text("CREATE TABLE IF NOT EXISTS entries (transfer BIGINT, account TEXT, cents BIGINT)")
BOOK = text("INSERT INTO entries (transfer, account, cents) VALUES (:transfer, :account, :cents)")


@dataclass
class Transfer:
    id: int
    source: str
    target: str
    cents: int


@app.consume(
    "transfers",
    dead_letter="transfers.dlq",
    order="key",
    concurrency=8,
    offsets=os.environ.get("LEDGER", "sqlite:///ledger.db"),
)
def book(transfer: Transfer, tx: Connection) -> None:
    if transfer.cents <= 0:
        raise Reject(f"a transfer of {transfer.cents} cents")
    tx.execute(CREATE)
    for account, cents in ((transfer.source, -transfer.cents), (transfer.target, transfer.cents)):
        tx.execute(BOOK, {"transfer": transfer.id, "account": account, "cents": cents})
