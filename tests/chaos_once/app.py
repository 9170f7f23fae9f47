"""The apps of the run. Each writes one output, or one row, for each record."""

import os
import random
import time
from typing import Any

from penstock import App
from penstock.assign import CooperativeSticky

# The longest time for one record.
_SECONDS = float(os.environ["CHAOS_SECONDS"])
_SINK, _SOURCE = os.environ["CHAOS_SINK"], os.environ["CHAOS_SOURCE"]
_OUT = os.environ.get("CHAOS_OUT")
_CONCURRENCY = int(os.environ["CHAOS_CONCURRENCY"])
# The kind of this member: native or self-managed. Both share a group.
_ASSIGNOR = {"native": None, "self-managed": CooperativeSticky()}[os.environ["CHAOS_MEMBER"]]

app = App(
    os.environ["CHAOS_GROUP"],
    settings={} if _SINK == "share" else {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000},
)


def work() -> None:
    time.sleep(random.random() * _SECONDS)


if _SINK == "exactly-once":

    @app.consume(_SOURCE, to=_OUT, delivery="exactly-once", order="key", concurrency=_CONCURRENCY, assignor=_ASSIGNOR)
    def copy(value: int) -> str:
        work()
        return str(value)

elif _SINK == "share":

    @app.consume(
        _SOURCE, to=_OUT, dead_letter=f"{_OUT}.dlq", mode="share", order="none", concurrency=_CONCURRENCY, members=2
    )
    def hand_on(value: int) -> str:
        work()
        return str(value)

else:
    import sqlalchemy as sa

    _WRITE = sa.text("INSERT INTO sold (id) VALUES (:id)")

    @app.consume(
        _SOURCE, order="key", concurrency=_CONCURRENCY, offsets=os.environ["CHAOS_DATABASE"], assignor=_ASSIGNOR
    )
    def note(value: int, tx: Any) -> None:
        tx.execute(_WRITE, {"id": value})
        work()
