"""Memory with a large backlog and a slow handler: python benchmarks/memory.py.

What is delivered and unfinished is bounded, and so is what the client buffers: memory does not grow with the backlog.
The consumer is a process of its own (`penstock run`), looked at from outside: idle before anything is written, and its
peak while it works on the backlog.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster, make_producer

PARTITIONS = 4
CHUNK = 50_000
KEYS = [b"key-%d" % number for number in range(1_000)]
START_SECONDS = 60.0

APP = """
import time
from penstock import App

app = App("{group}")

@app.consume("{topic}", order="key", concurrency=8)
def slow(value: bytes) -> None:
    time.sleep(0.02)
"""


class Consumer:
    """A `penstock run` and its memory, as the kernel sees it."""

    def __init__(self, folder: Path, brokers: str, topic: str) -> None:
        (folder / "backlog.py").write_text(APP.format(group=uuid4().hex, topic=topic))
        self._events = folder / "events.jsonl"
        command = [sys.executable, "-m", "penstock", "run", "backlog:app", "--brokers", brokers, "--json"]
        self.process = subprocess.Popen(
            [*command, "--events", str(self._events)],
            cwd=folder,
            env={**os.environ},
            stdout=subprocess.DEVNULL,
        )

    def wait_for_an_assignment(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not (self._events.exists() and '"event":"assigned"' in self._events.read_text(encoding="utf-8")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("The consumer did not start.")
            time.sleep(0.1)

    def handled(self) -> int:
        with self._events.open(encoding="utf-8") as lines:
            return sum('"event":"finished"' in line for line in lines)

    def megabytes(self, field: str) -> float:
        """``VmRSS`` is what it has now, ``VmHWM`` the most it ever had."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise SystemExit(f"The kernel does not tell {field} of a process; this needs Linux.")


def fill(brokers: str, topic: str, records: int, tell: Callable[[int], None]) -> None:
    producer = make_producer(brokers, settings={"linger.ms": 50, "queue.buffering.max.messages": 2_000_000})
    # Random, so that compression saves nothing and the client's bounds, which are in bytes, mean what they say.
    values = [os.urandom(100) for _ in range(10_000)]
    for start in range(0, records, CHUNK):
        for number in range(start, min(records, start + CHUNK)):
            producer.produce(
                topic, value=values[number % 10_000], key=KEYS[number % 1_000], partition=number % PARTITIONS
            )
        producer.poll(0)
        while len(producer) > 10 * CHUNK:
            producer.poll(0.1)
        tell(start + CHUNK)
    producer.flush(120)


@contextmanager
def consumer(folder: Path, brokers: str, topic: str) -> Iterator[Consumer]:
    running = Consumer(folder, brokers, topic)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(60)


def measure(brokers: str, records: int, seconds: float, progress: Progress) -> dict[str, float]:
    topic = uuid4().hex
    Cluster(brokers).create_topics([topic], partitions=PARTITIONS)
    with tempfile.TemporaryDirectory() as name, consumer(Path(name), brokers, topic) as running:
        running.wait_for_an_assignment()
        idle = running.megabytes("VmRSS")
        filling = progress.add_task("filling", total=records)
        fill(brokers, topic, records, lambda done: progress.update(filling, completed=done))
        consuming = progress.add_task("consuming", total=int(seconds))
        for second in range(int(seconds)):
            time.sleep(1)
            progress.update(consuming, completed=second + 1)
        peak = running.megabytes("VmHWM")
        return {
            "records": records,
            "handled": running.handled(),
            "idle_mb": round(idle, 1),
            "peak_mb": round(peak, 1),
            "growth_mb": round(peak - idle, 1),
        }


def main(
    records: int = 5_000_000,
    seconds: float = 20.0,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    columns = TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with tempfile.TemporaryDirectory() as folder:
        kafka = Embedded(Path(folder))
        try:
            brokers = str(kafka.up(UpOptions(port=0)).bootstrap)
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                result = measure(brokers, records, seconds, progress)
        finally:
            kafka.down()
    if as_json:
        print(json.dumps(result, indent=2))
        return
    table = Table("what", "figure")
    for name, figure in result.items():
        table.add_row(name.replace("_mb", ", MB"), f"{figure:,}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
