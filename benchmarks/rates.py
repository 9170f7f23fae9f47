"""``rate=`` with 10,000 tenants: no tenant exceeds its rate in any second, and all workers are busy.

Two tenants flood the topic. The handler waits 10 ms, 64 at once. Programs with and without a rate take turns on the
same records. What a tenant did is read from the times at which the handler was called.

Run it with: nice -n -15 python benchmarks/rates.py (about half a minute).
"""

import asyncio
import threading
import time
from collections import defaultdict
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill

from penstock import App, Rate, Record
from penstock import engine as local
from penstock.kafka import Cluster

TENANTS = 10_000
LIMIT, BURST = 100, 10
CONCURRENCY = 64
WAIT = 0.010
# Of each tenant that floods: every seventh record.
FLOODS = ("flood", "other flood")


def key_of(number: int) -> bytes:
    tenant = FLOODS[number // 7 % 2] if number % 7 == 0 else f"tenant-{number % TENANTS}"
    return tenant.encode()


def run(brokers: str, topic: str, rate: Rate | None, seconds: float) -> dict[str, list[float]]:
    """Return when the handler was called for each tenant, in seconds since the first call."""
    app, stop = App(uuid4().hex), threading.Event()
    calls: list[tuple[float, bytes | None]] = []

    @app.consume(topic, order="none", concurrency=CONCURRENCY, rate=rate, max_in_flight=50_000)
    async def handle(record: Record) -> None:
        calls.append((time.perf_counter(), record.key))
        await asyncio.sleep(WAIT)

    def end() -> None:
        while not calls or time.perf_counter() - calls[0][0] < seconds:
            time.sleep(0.05)
        stop.set()

    threading.Thread(target=end, daemon=True).start()
    local.run(app, brokers=brokers, emit=lambda _event: None, stop=stop)
    found: dict[str, list[float]] = defaultdict(list)
    for at, key in calls:
        found[(key or b"").decode()].append(at - calls[0][0])
    return found


def most_in_a_second(times: list[float]) -> int:
    most = first = 0
    for number, at in enumerate(times):
        while at - times[first] >= 1.0:
            first += 1
        most = max(most, number - first + 1)
    return most


def row(what: str, calls: dict[str, list[float]], seconds: float) -> dict[str, Any]:
    total = sum(1 for times in calls.values() for at in times if at < seconds)
    return {
        "what": what,
        "calls/s": round(total / seconds),
        "of 64 workers busy": f"{total / seconds * WAIT / CONCURRENCY:.1%}",
        "most calls of a tenant in a second": max(map(most_in_a_second, calls.values())),
        "calls/s of one that floods": round(len([at for at in calls[FLOODS[0]] if at < seconds]) / seconds),
    }


def main(
    seconds: float = 5.0,
    rounds: int = 2,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    topic = f"bench-{uuid4().hex[:8]}"
    limited = Rate(LIMIT, burst=BURST, by="key")
    with broker(brokers) as address:
        fill(address, topic, int(1.5 * seconds * CONCURRENCY / WAIT), 4, key_of=key_of)
        for _ in range(rounds):
            for what, rate in (("no rate", None), (f"{LIMIT}/s for each tenant, burst {BURST}", limited)):
                found = row(what, run(address, topic, rate, seconds), seconds)
                print(found if as_json else "  ".join(f"{name}: {value}" for name, value in found.items()))
        Cluster(address).delete_topics([topic])


if __name__ == "__main__":
    typer.run(main)
