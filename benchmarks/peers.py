"""Penstock against its peers, each in a process of its own, on one broker in one run: python benchmarks/peers.py.

Throughput: a handler that does nothing, on records of 100 bytes with 1,000 keys in 4 partitions; slow peers get fewer
of them. Parallelism: a handler that waits for 10 ms, on one partition, 100 at once where that can be had. Seconds are
from the first record that is handled to the last, and all take turns.
"""

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill, show
from rich.console import Console

from penstock.jvm.coordinates import Artifact, Coordinates
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java
from penstock.paths import jar_cache

HERE = Path(__file__).parent / "peers"
PARALLEL_CONSUMER = "io.confluent.parallelconsumer:parallel-consumer-core:0.5.3.3"
WAIT_SECONDS, WAITING = 0.01, 10_000
PATIENCE_SECONDS = 600


@dataclass(frozen=True)
class Peer:
    """It gets ``share`` of the records, and waits for ``waiting`` of them (a serial peer for fewer)."""

    name: str
    command: list[str]
    order: str = ""
    share: float = 1.0
    waiting: int = WAITING

    def seconds(self, brokers: str, topic: str, records: int, wait: float) -> float:
        arguments = [brokers, topic, uuid4().hex, str(records), str(wait), *filter(None, [self.order])]
        answer = subprocess.run(
            [*self.command, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        if answer.returncode:
            sys.exit(f"{self.name} failed: {answer.stderr[-2000:]}")
        return float(answer.stdout.split()[-1])


def peers_python() -> str:
    """An interpreter that has them, kept for the next time."""
    wanted = (HERE / "requirements.txt").read_text()
    folder = jar_cache().parent / "peers"
    python, made = folder / "bin" / "python", folder / "requirements.txt"
    if not made.exists() or made.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
        made.write_text(wanted)
    return str(python)


def all_peers() -> list[Peer]:
    jars = resolve(Coordinates("Confluent's Parallel Consumer", (Artifact.parse(PARALLEL_CONSUMER),)))
    java = [str(find_java()), "-cp", ":".join(map(str, jars)), str(HERE / "ParallelConsumer.java")]
    others, penstocks = peers_python(), [sys.executable, str(HERE / "with_penstock.py")]
    return [
        Peer("bare poll() loop", [sys.executable, str(HERE / "bare_poll.py")], waiting=500),
        Peer("penstock, order=key", penstocks, "key"),
        Peer("penstock, order=none", penstocks, "none"),
        Peer("Parallel Consumer (Java), KEY", java, "KEY", 0.3),
        Peer("Parallel Consumer (Java), UNORDERED", java, "UNORDERED", 0.3),
        Peer("Quix Streams", [others, str(HERE / "quix.py")], share=0.3, waiting=500),
        Peer("FastStream (confluent)", [others, str(HERE / "fast_stream.py")], share=0.02),
    ]


def measure(brokers: str, records: int, rounds: int, note: Any) -> list[dict[str, Any]]:
    peers = all_peers()
    sizes = {int(records * peer.share) for peer in peers}
    topics = {size: f"peers-{uuid4().hex[:8]}" for size in sizes}
    narrow = {size: f"peers-{uuid4().hex[:8]}" for size in {peer.waiting for peer in peers}}
    note("filling topics")
    for size, topic in topics.items():
        fill(brokers, topic, size, 4)
    for size, topic in narrow.items():
        fill(brokers, topic, size, 1)
    rows: list[dict[str, Any]] = []
    for title, wait in (("does nothing", 0.0), ("waits 10 ms", WAIT_SECONDS)):
        seen: dict[str, list[float]] = {peer.name: [] for peer in peers}
        for turn in range(rounds):
            for peer in peers:
                note(f"{title}: {peer.name}, {turn + 1} of {rounds}")
                size = peer.waiting if wait else int(records * peer.share)
                topic = narrow[size] if wait else topics[size]
                seen[peer.name].append(size / peer.seconds(brokers, topic, size, wait))
        base = median(seen["bare poll() loop"])
        for peer in peers:
            rate = median(seen[peer.name])
            size = peer.waiting if wait else int(records * peer.share)
            rows.append({"what": f"{title}: {peer.name}", "seconds": size / rate, "records": size,
                         "rates": seen[peer.name], "ratio": f"{rate / base:.3g} x poll"})  # fmt: skip
    return rows


def main(
    records: int = 1_000_000,
    rounds: int = 3,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    progress = Console(stderr=True)
    with broker(brokers) as address, progress.status("") as status:
        rows = measure(address, records, rounds, status.update)
    show(rows, title=f"{records:,} records, medians of {rounds} rounds", as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
