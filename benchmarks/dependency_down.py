"""``Breaker(then="pause")`` while what the handler calls is down for a minute: what is lost, and how soon it goes on.

The handler waits 5 ms, 32 at once, for records of 1,000 keys that wait in the topic. Five seconds after its first call,
the dependency goes down: each call fails with a ConnectionError. One record is tried every probe. After the outage, the
run ends when all records are handled.

Run it with: python benchmarks/dependency_down.py (about 90 seconds).
"""

import asyncio
import json
import threading
import time
from typing import Annotated
from uuid import uuid4

import typer
from bench import broker, fill

from penstock import App, Breaker, Record, Retry
from penstock import engine as local
from penstock.core.reports.events import DeadLettered, Event
from penstock.kafka import Cluster

CONCURRENCY = 32
WAIT = 0.005
UP_SECONDS = 5.0


def run(brokers: str, topic: str, *, down: float, probe: float) -> dict[str, object]:
    app = App(uuid4().hex)
    breaker = Breaker(share=0.9, window=1000, then="pause", probe=f"{probe:g}s", on=(ConnectionError,))
    began: list[float] = []
    handled: set[tuple[int, int]] = set()
    calls_down: list[float] = []
    first_after: list[float] = []
    dead: list[Event] = []

    @app.consume(
        topic,
        order="key",
        concurrency=CONCURRENCY,
        breaker=breaker,
        dead_letter=f"{topic}.dlq",
        retry=Retry(attempts=3),
    )
    async def call(record: Record) -> None:
        now = time.perf_counter()
        began[:] = began or [now]
        since = now - began[0] - UP_SECONDS
        await asyncio.sleep(WAIT)
        if 0 <= since < down:
            calls_down.append(since)
            raise ConnectionError("the service does not answer")
        if since >= down and not first_after:
            first_after.append(since - down)
        handled.add((record.partition, record.offset))

    def note(event: Event) -> None:
        if isinstance(event, DeadLettered):
            dead.append(event)

    local.run(app, brokers=brokers, emit=note, stop=threading.Event(), until_caught_up=True)
    written = sum(Cluster(brokers).end_offsets([(topic, number) for number in range(4)]).values())
    return {
        "down, s": down,
        "probe, s": probe,
        "records": written,
        "lost": written - len(handled),
        "dead letters": len(dead),
        "calls in the first second of the outage": sum(1 for at in calls_down if at < 1.0),
        "calls in the rest of it": sum(1 for at in calls_down if at >= 1.0),
        "first success after it, s": f"{first_after[0]:.1f}",
    }


def main(
    down: float = 60.0,
    probe: float = 5.0,
    records: int = 100_000,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    topic = f"bench-{uuid4().hex[:8]}"
    with broker(brokers) as address:
        fill(address, topic, records, 4)
        found = run(address, topic, down=down, probe=probe)
        print(json.dumps(found) if as_json else "\n".join(f"{name}: {value}" for name, value in found.items()))
        Cluster(address).delete_topics([topic])


if __name__ == "__main__":
    typer.run(main)
