"""From produce to the start of the handler, at a steady rate, in one run on one machine: python benchmarks/latency.py.

A bare poll loop and a handler that returns its value, once with each delivery, are processes of their own. They take
turns: in each round every program consumes a topic of its own, alone on the machine. With ``--together`` all of them
consume the same records at the same time, and compete for the processor.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, show_columns

from penstock.kafka import Cluster

HERE = Path(__file__).parent
PARTITIONS = 4
PROGRAMS = {
    "poll": "bare poll() loop",
    "at-least-once": "penstock, at-least-once",
    "exactly-once": "penstock, exactly-once",
}
# What comes first is slower in every program: connections, the first transaction, code that Java has not compiled yet.
WARM_UP_SECONDS = 3
TOPIC_SECONDS = 60.0


def measure(brokers: str, rate: int, seconds: int, rounds: int, *, together: bool) -> list[dict[str, Any]]:
    seen: dict[str, list[list[float]]] = {program: [] for program in PROGRAMS}
    turns = [[*PROGRAMS]] if together else [[program] for program in PROGRAMS]
    for number in range(rounds):
        for programs in turns:
            for program, millis in run_programs(programs, brokers, rate, seconds).items():
                found = [percentile(millis, each) for each in (50, 99, 100)]
                seen[program].append(found)
                figures = f"p50 {found[0]:.1f}, p99 {found[1]:.1f} ms"
                print(f"{program}, {number + 1} of {rounds}: {figures}", file=sys.stderr)
    rows: list[dict[str, Any]] = []
    for program, rounds_seen in seen.items():
        p50, p99, longest = (median(column) for column in zip(*rounds_seen, strict=True))
        ratio = median(p99 / base for (_, p99, _), (_, base, _) in zip(rounds_seen, seen["poll"], strict=True))
        rows.append({"what": PROGRAMS[program], "p50": p50, "p99": p99, "longest": longest, "ratio": ratio})
    return rows


def run_programs(programs: list[str], brokers: str, rate: int, seconds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each record, by program; the programs run at the same time."""
    topic, *outs = (f"bench-{uuid4().hex[:8]}" for _ in range(1 + len(programs)))
    make_topics(brokers, [topic, *outs])
    warm_up = rate * WARM_UP_SECONDS
    records = warm_up + rate * seconds
    consumers = {}
    for program, out in zip(programs, outs, strict=True):
        command = ["latency_consumer.py", brokers, topic, out, program, str(records), str(warm_up)]
        consumers[program] = start(*command)
    for consumer in consumers.values():
        line(consumer)  # it has its partitions
    writer = start("steady_producer.py", brokers, topic, str(rate), str(records / rate))
    found = {program: json.loads(line(consumer)) for program, consumer in consumers.items()}
    for process in (writer, *consumers.values()):
        process.wait()
    Cluster(brokers).delete_topics([topic, *outs])
    return found


def make_topics(brokers: str, topics: list[str]) -> None:
    """And wait until every client finds them."""
    cluster = Cluster(brokers)
    cluster.create_topics(topics, partitions=PARTITIONS)
    deadline = time.monotonic() + TOPIC_SECONDS
    while not {*topics} <= {*cluster.topics()}:
        if time.monotonic() > deadline:
            sys.exit("The topics did not appear.")
        time.sleep(0.1)


def start(script: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, str(HERE / script), *arguments], stdout=subprocess.PIPE, text=True)


def line(process: "subprocess.Popen[str]") -> str:
    text = process.stdout.readline() if process.stdout is not None else ""
    if not text:
        sys.exit("A consumer ended before it had all records.")
    return text


def percentile(millis: list[float], percent: float) -> float:
    ordered = sorted(millis)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def main(  # noqa: PLR0917 - options of a command
    rate: int = 1_000,
    seconds: int = 15,
    rounds: int = 3,
    brokers: str | None = None,
    together: Annotated[bool, typer.Option("--together")] = False,  # noqa: FBT002
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    with broker(brokers) as address:
        rows = measure(address, rate, seconds, rounds, together=together)
    columns = {"p50": "p50, ms", "p99": "p99, ms", "longest": "longest, ms", "ratio": "p99, x poll"}
    show_columns(rows, columns, title=f"{rate:,} records/s for {seconds} s, medians of {rounds}", as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
