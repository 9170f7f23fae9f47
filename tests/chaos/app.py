"""The app of the chaos run. It handles each record for a short time, in key order, and logs what it did."""

import os
import random
import time

from chaos.handler_log import HandlerLog
from chaos.user_assignor import TakeTurns
from penstock import App, Record
from penstock.assign import ASSIGNORS, Assignor

# The kind of this member: native, self-managed, or with an assignor that a user wrote.
_STRATEGY = os.environ.get("CHAOS_STRATEGY", "cooperative-sticky")
_ASSIGNORS: dict[str, str | Assignor] = {"native": _STRATEGY, "self-managed": ASSIGNORS[_STRATEGY], "own": TakeTurns()}
# The longest time for one record.
_SECONDS = float(os.environ.get("CHAOS_SECONDS", "0.002"))

app = App(
    os.environ["CHAOS_GROUP"],
    # The shortest session timeout that the broker allows. It must be shorter than a freeze.
    settings={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000},
)
handler_log = HandlerLog(os.environ["CHAOS_HANDLER_LOG"])


@app.consume(
    os.environ["CHAOS_TOPIC"],
    order="key",
    concurrency=16,
    commit_every="500ms",
    assignor=_ASSIGNORS[os.environ["CHAOS_MEMBER"]],
)
def work(value: bytes, record: Record) -> None:
    where = record.topic, record.partition, record.offset, (record.key or b"").decode()
    handler_log.write("began", *where)
    time.sleep(random.random() * _SECONDS)
    handler_log.write("ended", *where)
