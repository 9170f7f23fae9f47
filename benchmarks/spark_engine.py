"""The Spark engine against what one would write by hand, in one run on one machine: python benchmarks/spark_engine.py.

All ways read the same topics in one session and take turns. The first turn is shown too: its ways run in a cold JVM,
the way by hand last, so that it is not the one that pays for the start. Of the others, the best counts.

- No-op: a handler that looks at each value, against Spark's connector with ``mapInArrow``.
- JSON: dataclass in, JSON out to another topic, against the same by hand with the connector's sink; and exactly once.
- Waiting: 10 ms a record, 100 at once in each of two tasks, against 200 at once without any cost; in a warm session.
- Cold start: ``penstock run --engine spark --until-caught-up`` in a process of its own, as the run reports it, against
  the first batch by hand in a process of its own, without the start of its session.
- Demo: the Spark part of ``penstock demo``, from the start of its session to the table.
- Latency: from producing a record to its output, at 1,000 records a second.

The last column has the target, and whether it was reached. ``--only json`` measures one of these parts.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill
from output_latency import latencies, percentile, produce_steadily, stamped_topic
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table
from spark_by_hand import CORES, by_hand, looked_at_by_hand, price, priced_by_hand

from penstock import App
from penstock import spark as engine
from penstock.kafka import Cluster
from penstock.spark.session.spark_session import spark_session

PARTITIONS = 4
WAIT_SECONDS = 0.01
AT_ONCE = 100
LATENCY_SECONDS = 20
RATE = 1_000
DEMO_STEP = "Running the app on the spark engine"

Note = Callable[[str], None]
"""Says what the run does now."""

COLD = """
from penstock import App
app = App("{group}")

@app.consume("{source}")
def handle(value: bytes) -> None:
    len(value)
"""


@dataclass(frozen=True)
class Row:
    """A figure: seconds and records, or only ``figure``, with its target. ``reached`` is None without a target."""

    what: str
    figure: str
    seconds: float | None = None
    records: int | None = None
    target: str = ""
    reached: bool | None = None


def order(number: int) -> bytes:
    return b'{"id":%d,"amount":%d,"note":"%s"}' % (number, number % 977, b"x" * 60)


def look(value: bytes) -> None:
    len(value)


def wait(value: bytes) -> None:
    time.sleep(WAIT_SECONDS)


def echo(value: bytes) -> bytes:
    return value


class Bench:
    def __init__(self, session: SparkSession, brokers: str, folder: Path) -> None:
        self._session = session
        self.brokers = brokers
        self._folder = folder

    def fill(self, records: int, partitions: int = PARTITIONS) -> str:
        """A new topic with so many records, or none."""
        topic = f"bench-{uuid4().hex[:8]}"
        fill(self.brokers, topic, records, partitions, order)
        return topic

    def penstock(self, source: str, function: Callable[..., Any], **options: Any) -> float:
        app = App(uuid4().hex)
        app.consume(source, **options)(function)
        began = time.perf_counter()
        self.run(app, threading.Event(), until_caught_up=True)
        return time.perf_counter() - began

    def delete(self, *topics: str) -> None:
        Cluster(self.brokers).delete_topics(list(topics))

    def run(self, app: App, stop: threading.Event, **options: Any) -> None:
        engine.run(app, brokers=self.brokers, emit=lambda _: None, stop=stop, session=self._session, **options)

    def by_hand(self, source: str, transform: Callable[[DataFrame], DataFrame], sink: str | None) -> float:
        return by_hand(self._session, self.brokers, source, transform, sink)

    def cold(self, source: str) -> float:
        """The seconds of a run in a process of its own, as it reports them."""
        folder = self._folder / uuid4().hex
        folder.mkdir()
        (folder / "cold.py").write_text(COLD.format(group=uuid4().hex, source=source))
        said = _output_of(
            *(sys.executable, "-m", "penstock", "run", "cold:app", "--engine", "spark", "--until-caught-up"),
            *("--brokers", self.brokers, "--master", f"local[{CORES}]", "--json"),
            folder=folder,
        )
        return float(json.loads(said)["stopped"][0]["seconds"])

    def cold_by_hand(self, source: str) -> float:
        """The seconds of the first batch of a session in a process of its own, without the start of the session."""
        program = f"import spark_by_hand; spark_by_hand.say_cold_by_hand({self.brokers!r}, {source!r})"
        return float(_output_of(sys.executable, "-c", program, folder=Path(__file__).parent).split()[-1])

    def demo(self) -> float:
        """The seconds from the moment when the demo turns to Spark until it shows its table."""
        began = ended = 0.0
        command = (sys.executable, "-m", "penstock", "demo", "--engine", "spark", "--brokers", self.brokers)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
            said = []
            for line in demo.stdout or ():
                said.append(line)
                began = time.perf_counter() if DEMO_STEP in line else began
                ended = time.perf_counter() if "orders on each engine" in line else ended
        if demo.returncode or not began or not ended:
            raise RuntimeError(f"the demo ended with {demo.returncode}: {''.join(said)[-2000:]}")
        return ended - began

    def latency(self, note: Note) -> list[float]:
        source, out, stop = self.fill(0), stamped_topic(self.brokers, PARTITIONS), threading.Event()
        app = App(uuid4().hex)
        app.consume(source, to=out)(echo)
        with _background(lambda: self.run(app, stop), stop):
            note("latency: producing")
            sent = produce_steadily(self.brokers, source, partitions=PARTITIONS, rate=RATE, seconds=LATENCY_SECONDS)
            cluster = Cluster(self.brokers)
            tps, deadline = cluster.topic_partitions([out]), time.monotonic() + 60
            while sum(cluster.end_offsets(tps).values()) < sent and time.monotonic() < deadline:
                time.sleep(0.1)
        taken = latencies(self.brokers, out)
        self.delete(source, out)
        return taken


class _background:  # noqa: N801 - used as a function
    """Runs a function on a thread; at the end of the block it is asked to stop, and its error is raised."""

    def __init__(self, function: Callable[[], None], stop: threading.Event) -> None:
        self._error: BaseException | None = None
        self._stop = stop
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)

    def _run(self, function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised at the end of the block
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error


def _output_of(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr[-2000:]}")
    return done.stdout


@dataclass(frozen=True)
class Times:
    """The seconds of each turn of one way."""

    each: list[float]

    @property
    def first(self) -> float:
        return self.each[0]

    @property
    def warm(self) -> float:
        return min(self.each[1:])


def in_turns(ways: dict[str, Callable[[], float]], turns: int, note: Note) -> dict[str, Times]:
    times: dict[str, list[float]] = {what: [] for what in ways}
    for turn in range(turns + 1):
        for what, run in ways.items():
            note(f"{what}, turn {turn} of {turns}")
            times[what].append(run())
    return {what: Times(each) for what, each in times.items()}


def ratio(what: str, value: float, of: str, *, seconds: float, records: int, least: float | None = None) -> Row:
    """A row that compares a way with another one; ``least`` is the target."""
    figure = f"{value:.2f} x {of}"
    if least is None:
        return Row(what, figure, seconds, records)
    return Row(what, figure, seconds, records, f"at least {least:g}", value >= least)


def at_most(what: str, seconds: float, most: float) -> Row:
    return Row(what, f"{seconds:.2f} s", target=f"at most {most:g} s", reached=seconds <= most)


def against_by_hand(times: dict[str, Times], records: int, least: dict[tuple[str, str], float]) -> list[Row]:
    """The last way is the one by hand; ``least`` has the targets by way and kind of turn."""
    *_, by_hand_times = times.values()
    return [
        ratio(
            f"{what}, {turn}", getattr(by_hand_times, turn) / getattr(each, turn), "by hand",
            seconds=getattr(each, turn), records=records, least=least.get((what, turn)),
        )
        for what, each in times.items() for turn in ("first", "warm")
    ]  # fmt: skip


def no_op(bench: Bench, records: int, turns: int, note: Note) -> Iterator[Row]:
    source = bench.fill(records)
    times = in_turns(
        {
            "no-op": lambda: bench.penstock(source, look),
            "no-op, order=key": lambda: bench.penstock(source, look, order="key"),
            "no-op by hand": lambda: bench.by_hand(source, looked_at_by_hand, None),
        },
        turns, note,
    )  # fmt: skip
    bench.delete(source)
    yield from against_by_hand(times, records, {("no-op", "first"): 3, ("no-op", "warm"): 2})


def json_to_topic(bench: Bench, records: int, turns: int, note: Note) -> Iterator[Row]:
    source, out = bench.fill(records), bench.fill(0)
    times = in_turns(
        {
            "JSON": lambda: bench.penstock(source, price, to=out),
            "JSON, exactly once": lambda: bench.penstock(source, price, to=out, delivery="exactly-once"),
            "JSON by hand": lambda: bench.by_hand(source, priced_by_hand(out), out),
        },
        turns, note,
    )  # fmt: skip
    bench.delete(source, out)
    yield from against_by_hand(times, records, {("JSON", "warm"): 1.5})
    once, least = times["JSON, exactly once"].warm, times["JSON"].warm
    yield ratio("exactly once", least / once, "at least once", seconds=once, records=records, least=0.85)


def waiting(bench: Bench, records: int, _turns: int, _note: Note) -> Iterator[Row]:
    waited_for = max(10_000, records // 10)
    first = bench.fill(1_000, CORES)  # the first job of a session takes two seconds longer
    bench.penstock(first, wait, order="none", concurrency=AT_ONCE)
    source = bench.fill(waited_for, CORES)
    seconds = bench.penstock(source, wait, order="none", concurrency=AT_ONCE)
    bench.delete(first, source)
    ideal = waited_for * WAIT_SECONDS / (AT_ONCE * CORES)
    what = f"10 ms, {AT_ONCE} at once in {CORES} tasks"
    yield ratio(what, ideal / seconds, "ideal", seconds=seconds, records=waited_for, least=0.95)


def cold_start(bench: Bench, records: int, _turns: int, note: Note) -> Iterator[Row]:
    source = bench.fill(records)
    note("cold start: by hand")
    first = bench.cold_by_hand(source)
    note("cold start: penstock run")
    cold = bench.cold(source)
    bench.delete(source)
    yield Row("cold start by hand, its first batch", "1.00", first, records)
    yield ratio("cold start", first / cold, "by hand", seconds=cold, records=records, least=3)


def demo(bench: Bench, _records: int, _turns: int, _note: Note) -> Iterator[Row]:
    yield at_most("demo, from the session's start to the table", bench.demo(), 7.5)


def latency(bench: Bench, _records: int, _turns: int, note: Note) -> Iterator[Row]:
    taken = bench.latency(note)
    yield at_most(f"latency p50 at {RATE:,} records/s", percentile(taken, 0.5), 0.5)
    yield at_most(f"latency p99 at {RATE:,} records/s", percentile(taken, 0.99), 1.5)


PARTS = {
    "no-op": no_op,
    "json": json_to_topic,
    "waiting": waiting,
    "cold": cold_start,
    "demo": demo,
    "latency": latency,
}


def show(rows: list[Row], *, title: str) -> None:
    table = Table("what", "seconds", "records/s", "ratio", "target", title=title)
    for row in rows:
        seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
        rate = "" if row.seconds is None or row.records is None else f"{row.records / row.seconds:,.0f}"
        verdict = "" if row.reached is None else f"{row.target}: {'reached' if row.reached else 'MISSED'}"
        table.add_row(row.what, seconds, rate, row.figure, verdict)
    Console().print(table)


def main(
    records: int = 3_000_000,
    turns: int = 3,
    brokers: str | None = None,
    only: Annotated[list[str] | None, typer.Option(help=f"Only these parts: {', '.join(PARTS)}.")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    progress = Console(stderr=True)
    rows: list[Row] = []
    try:
        with (
            broker(brokers) as address,
            spark_session("benchmark", master=f"local[{CORES}]") as session,
            progress.status("") as status,
        ):

            def note(text: str) -> None:
                # A run takes many minutes: without a terminal, say what it does too.
                status.update(text) if progress.is_terminal else progress.print(text)

            bench = Bench(session, address, folder)
            for name in only or PARTS:
                note(name)
                rows.extend(PARTS[name](bench, records, max(1, turns), note))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # Also what was measured before an error.
        if as_json:
            print(json.dumps([asdict(row) for row in rows], indent=2))
        else:
            show(rows, title=f"{records:,} records")


if __name__ == "__main__":
    typer.run(main)
