"""Processor time of a member at a steady rate, for each record, and without records: python benchmarks/idle_cost.py.

A bare poll loop and a handler that does nothing, ``def`` and ``async def``, are processes of their own. They take
turns: each first waits for records that do not come, then consumes a steady rate. All threads of a process count, those
of the Kafka client included. Other load on the machine makes every wake-up dearer, so compare with the bare loop.
"""

import json
import sys
import time
from statistics import median
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, show_columns
from latency import line, make_topics, percentile, start

from penstock.kafka import Cluster

PROGRAMS = {
    "poll": "bare poll() loop",
    "def": 'penstock, order="key"',
    "async": 'penstock, order="key", async',
}
# What comes first costs more in every program: joining the group, connections, the first imports.
SETTLE_SECONDS = 3.0
WARM_UP_SECONDS = 3


def measure(brokers: str, rate: int, seconds: int, rounds: int) -> list[dict[str, Any]]:
    seen: dict[str, list[tuple[float, float, float, float]]] = {program: [] for program in PROGRAMS}
    for number in range(rounds):
        for program, found in seen.items():
            found.append(run_program(program, brokers, rate, seconds))
            micros, idle, p50, p99 = found[-1]
            figures = f"{micros:.0f} us, idle {idle:.2f} %, p50 {p50:.1f}, p99 {p99:.1f} ms"
            print(f"{program}, {number + 1} of {rounds}: {figures}", file=sys.stderr)
    names = ("micros", "idle", "p50", "p99")
    return [
        {
            "what": PROGRAMS[program],
            **{name: median(column) for name, column in zip(names, zip(*found, strict=True), strict=True)},
        }
        for program, found in seen.items()
    ]


def run_program(program: str, brokers: str, rate: int, seconds: int) -> tuple[float, float, float, float]:
    """Microseconds of processor time for each record; percent of a core without records; p50 and p99 in ms."""
    topic = f"bench-{uuid4().hex[:8]}"
    make_topics(brokers, [topic])
    records, warm_up = rate * (WARM_UP_SECONDS + seconds + 1), rate * WARM_UP_SECONDS
    consumer = start("latency_consumer.py", brokers, topic, topic, program, str(records), str(warm_up))
    line(consumer)  # it has its partitions
    time.sleep(SETTLE_SECONDS)
    idle = cpu_seconds(consumer.pid, seconds) / seconds * 100
    writer = start("steady_producer.py", brokers, topic, str(rate), str(records / rate))
    line(writer)  # it writes now
    time.sleep(WARM_UP_SECONDS)
    busy = cpu_seconds(consumer.pid, seconds)
    millis = json.loads(line(consumer))
    for process in (writer, consumer):
        process.wait()
    Cluster(brokers).delete_topics([topic])
    return busy / (rate * seconds) * 1e6, idle, percentile(millis, 50), percentile(millis, 99)


def cpu_seconds(pid: int, seconds: float) -> float:
    """The processor time that all threads of this process use in the next seconds."""
    # Linux: the clock of another process, which counts nanoseconds.
    clock = (~pid << 3) | 2
    before = time.clock_gettime(clock)
    time.sleep(seconds)
    return time.clock_gettime(clock) - before


def main(
    rate: int = 1_000,
    seconds: int = 10,
    rounds: int = 3,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    with broker(brokers) as address:
        rows = measure(address, rate, seconds, rounds)
    columns = {"micros": "us per record", "idle": "idle, % of a core", "p50": "p50, ms", "p99": "p99, ms"}
    title = f"{rate:,} records/s and none, {seconds} s each, medians of {rounds}"
    show_columns(rows, columns, title=title, as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
