"""``concurrency="auto"`` against fixed numbers, with a dependency that slows down when too many call it at once.

The dependency answers in 10 ms up to 64 calls at once, and then slower: all of them share its capacity. In the middle
of each run its capacity halves. Each program runs alone, on the same records; the fixed numbers first.

Run it with: nice -n -5 python benchmarks/auto_concurrency.py (2.5 minutes); it writes benchmarks/auto_concurrency.svg.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill
from plots import Line, Panel, write_svg

from penstock import App, Record
from penstock import engine as local
from penstock.core.reports.events import ConcurrencyChanged, Event
from penstock.kafka import Cluster

CAPACITY = 64
FIXED = (32, 64, 96, 128)
# Neither the start nor the moment of the change belongs to what is compared.
SETTLED_SECONDS = 2.0
_STEP = 0.25


@dataclass
class Dependency:
    halves_after: float
    answers_in: float
    began: float = 0.0
    running: int = 0
    calls: list[tuple[float, float, int]] = field(default_factory=list)  # when it ended, its seconds, calls at once

    async def call(self) -> None:
        began = time.perf_counter()
        self.began = self.began or began
        self.running += 1
        capacity = CAPACITY if began - self.began < self.halves_after else CAPACITY // 2
        await asyncio.sleep(self.answers_in * max(1.0, self.running / capacity))
        ended = time.perf_counter()
        self.calls.append((ended - self.began, ended - began, self.running))
        self.running -= 1


@dataclass
class Run:
    what: str
    calls: Sequence[tuple[float, float, int]]
    limits: Sequence[tuple[float, int]] = ()

    def throughput(self, start: float, end: float) -> float:
        return sum(1 for at, _, _ in self.calls if start <= at < end) / (end - start)

    def p99(self, start: float, end: float) -> float:
        found = sorted(seconds for at, seconds, _ in self.calls if start <= at < end)
        return found[int(len(found) * 0.99)] if found else 0.0

    def steps(self, end: float) -> list[tuple[float, float]]:
        return [(step * _STEP, self.throughput(step * _STEP, (step + 1) * _STEP)) for step in range(int(end / _STEP))]

    def at_once(self, end: float) -> list[tuple[float, float]]:
        found: dict[int, list[int]] = {}
        for at, _, running in self.calls:
            found.setdefault(int(at / _STEP), []).append(running)
        return [(step * _STEP, max(each)) for step, each in sorted(found.items()) if step * _STEP < end]


def run(brokers: str, topic: str, concurrency: Any, seconds: float, answers_in: float) -> Run:
    dependency, stop = Dependency(seconds / 2, answers_in), threading.Event()
    app = App(uuid4().hex)

    @app.consume(topic, order="none", concurrency=concurrency)
    async def handle(record: Record) -> None:
        await dependency.call()

    limits: list[tuple[float, int]] = []

    def emit(event: Event) -> None:
        if isinstance(event, ConcurrencyChanged):
            limits.append((time.perf_counter() - dependency.began, event.concurrency))

    def end() -> None:
        while not dependency.began or time.perf_counter() - dependency.began < seconds:
            time.sleep(0.1)
        stop.set()

    threading.Thread(target=end, daemon=True).start()
    local.run(app, brokers=brokers, emit=emit, stop=stop)
    return Run(str(concurrency), dependency.calls, limits)


def back_after(auto: Run, best: Run, half: float, end: float) -> float:
    """After the change: seconds until a second with 90 % of the best throughput and at most 1.2 times its p99."""
    wanted, slowest = 0.9 * best.throughput(half + SETTLED_SECONDS, end), best.p99(half + SETTLED_SECONDS, end)
    at = half
    while at + 1 < end:
        if auto.throughput(at, at + 1) >= wanted and auto.p99(at, at + 1) <= 1.2 * slowest:
            return at - half
        at += _STEP
    return float("inf")


def compared(runs: Sequence[Run], seconds: float) -> list[dict[str, Any]]:
    half = seconds / 2
    before, after = (SETTLED_SECONDS, half), (half + SETTLED_SECONDS, seconds)
    auto, fixed = runs[-1], runs[:-1]
    most = max(each.throughput(*before) for each in fixed)
    # The best number for someone who knows the dependency: nearly the most, and the quickest answers for that.
    best = min((each for each in fixed if each.throughput(*before) >= 0.97 * most), key=lambda each: each.p99(*before))
    rows: list[dict[str, Any]] = [
        {
            "what": f"concurrency={each.what}" + (" (best fixed number)" if each is best else ""),
            "records/s": round(each.throughput(*before)),
            "p99 ms": round(each.p99(*before) * 1000, 1),
            "records/s, half": round(each.throughput(*after)),
            "p99 ms, half": round(each.p99(*after) * 1000, 1),
            "of the best": (
                f"{each.throughput(*before) / best.throughput(*before):.2f} x, p99 "
                f"{each.p99(*before) / best.p99(*before):.2f} x; half "
                f"{each.throughput(*after) / best.throughput(*after):.2f} x, p99 "
                f"{each.p99(*after) / best.p99(*after):.2f} x"
            ),
        }
        for each in runs
    ]
    rows.append({"what": "auto is back after", "seconds": back_after(auto, best, half, seconds)})
    return rows


def plot(runs: Sequence[Run], seconds: float, answer_ms: float, path: Path) -> None:
    shown = [each for each in runs if each.what in {"32", "64", "128", "auto"}]
    write_svg(
        path,
        f"A dependency that answers in {answer_ms:g} ms up to {CAPACITY} at once, and to half as many later",
        [
            Panel("records/s", [Line(each.what, each.steps(seconds)) for each in shown]),
            Panel("calls at once", [Line(each.what, each.at_once(seconds)) for each in shown]),
        ],
        x="seconds",
    )


def main(
    seconds: float = 24.0,
    answer_ms: float = 10.0,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    topic = f"bench-{uuid4().hex[:8]}"
    with broker(brokers) as address:
        fill(address, topic, int(1_200 * CAPACITY * seconds / answer_ms), 4)
        runs = [run(address, topic, concurrency, seconds, answer_ms / 1000) for concurrency in (*FIXED, "auto")]
        Cluster(address).delete_topics([topic])
    plot(runs, seconds, answer_ms, Path(__file__).with_suffix(".svg"))
    for row in compared(runs, seconds):
        print(row) if as_json else print("  ".join(f"{name}: {value}" for name, value in row.items()))


if __name__ == "__main__":
    typer.run(main)
