"""The Spark engine against what one would write by hand, in one run on one machine: python benchmarks/spark_engine.py.

All ways read the same topics in one session and take turns. The first turn is shown too: its ways run in a cold JVM,
the way by hand last, so that it is not the one that pays for the start. Of the others, the best counts.

- No-op: a handler that looks at each value, against Spark's connector with ``mapInArrow``.
- JSON: dataclass in, JSON out to another topic, against the same by hand with the connector's sink; and exactly once.
- Waiting: 10 ms a record, 100 at once in each of two tasks, against 200 at once without any cost.
- Cold start: ``penstock run --engine spark --until-caught-up`` in a process of its own, as the run reports it.
- Latency: from producing a record to its output, at 1,000 records a second.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import typer
from bench import broker, fill, show
from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from penstock import App
from penstock import spark as engine
from penstock.kafka import Cluster, make_producer
from penstock.spark.pipelines.arrow_columns import SINK_SCHEMA
from penstock.spark.session.spark_session import spark_session

PARTITIONS = 4
CORES = 2
WAIT_SECONDS = 0.01
AT_ONCE = 100
LATENCY_SECONDS = 20
RATE = 1_000
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

COLD = """
from penstock import App
app = App("{group}")

@app.consume("{source}")
def handle(value: bytes) -> None:
    len(value)
"""


@dataclass
class Order:
    id: int
    amount: int
    note: str


def order(number: int) -> bytes:
    return b'{"id":%d,"amount":%d,"note":"%s"}' % (number, number % 977, b"x" * 60)


def look(value: bytes) -> None:
    len(value)


def price(order: Order) -> dict[str, int]:
    return {"id": order.id, "total": order.amount * 120 // 100}


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

    def run(self, app: App, stop: threading.Event, **options: Any) -> None:
        engine.run(app, brokers=self.brokers, emit=lambda _: None, stop=stop, session=self._session, **options)

    def by_hand(self, source: str, transform: Callable[[DataFrame], DataFrame], sink: str | None) -> float:
        """A batch as one would write it: Spark's source, a function on the rows, and Spark's sink or nothing."""
        began = time.perf_counter()
        kafka = {"kafka.bootstrap.servers": self.brokers}
        rows = transform(
            self._session.read.format("kafka").options(**kafka).option("subscribe", source)
            .option("includeHeaders", "true").load()
        )  # fmt: skip
        if sink is None:
            rows.write.format("noop").mode("append").save()
        else:
            options = {**kafka, "kafka.linger.ms": "5", "kafka.compression.type": "lz4"}
            rows.write.format("kafka").options(**options).save()
        return time.perf_counter() - began

    def cold(self, source: str) -> float:
        """The seconds of a run in a process of its own, as it reports them."""
        folder = self._folder / uuid4().hex
        folder.mkdir()
        (folder / "cold.py").write_text(COLD.format(group=uuid4().hex, source=source))
        command = [sys.executable, "-m", "penstock", "run", "cold:app", "--engine", "spark", "--until-caught-up"]
        done = subprocess.run(
            [*command, "--brokers", self.brokers, "--master", f"local[{CORES}]", "--json"],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(json.loads(done.stdout)["stopped"][0]["seconds"])

    def latency(self, note: Callable[[str], None]) -> list[float]:
        """The seconds from producing each record to its output."""
        source, out, stop = self.fill(0), self.fill(0), threading.Event()
        app = App(uuid4().hex)
        app.consume(source, to=out)(echo)
        runs = threading.Thread(target=self.run, args=(app, stop))
        runs.start()
        reader = Consumer({"bootstrap.servers": self.brokers, "group.id": uuid4().hex, "auto.offset.reset": "earliest"})
        reader.subscribe([out])
        producer, taken, sent, began = make_producer(self.brokers, settings={"linger.ms": 1}), [], 0, time.time()
        while time.time() < began + LATENCY_SECONDS + 10:
            while sent < (time.time() - began) * RATE and time.time() < began + LATENCY_SECONDS:
                producer.produce(source, f"{time.time()}".encode(), key=b"%d" % (sent % 100))
                sent += 1
            producer.poll(0)
            taken += [
                message.timestamp()[1] / 1000 - float(message.value() or b"0")
                for message in reader.consume(10_000, 0.01)
                if message.error() is None
            ]
        note("latency: stopping")
        stop.set()
        runs.join()
        reader.close()
        return taken[len(taken) // 4 :]  # the first ones wait for the workers' start


def looked_at_by_hand(rows: DataFrame) -> DataFrame:
    def handle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            count = 0
            for value in batch.column("value").to_pylist():
                count += len(value)
            yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64())], names=["bytes"])

    return rows.mapInArrow(handle, "bytes long")


def priced_by_hand(out: str) -> Callable[[DataFrame], DataFrame]:
    def handle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode, encode = msgspec.json.Decoder(Order).decode, msgspec.json.encode
        for batch in batches:
            values = [encode(price(decode(value))) for value in batch.column("value").to_pylist()]
            count = len(values)
            columns = [
                pa.array([out] * count, pa.string()),
                batch.column("key"),
                pa.array(values, pa.binary()),
                pa.nulls(count, _HEADERS),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["topic", "key", "value", "headers"])

    return lambda rows: rows.mapInArrow(handle, SINK_SCHEMA)


def compare(
    ways: dict[str, Callable[[], float]], records: int, turns: int, note: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Let the ways take turns; the last one is the one by hand, with which the others are compared."""
    times: dict[str, list[float]] = {what: [] for what in ways}
    for turn in range(turns + 1):
        for what, run in ways.items():
            note(f"{what}, turn {turn} of {turns}")
            times[what].append(run())
    *_, by_hand = times.values()
    rows = []
    for what, each in times.items():
        first, best = each[0], min(each[1:])
        rows.append({"what": f"{what}, first", "seconds": round(first, 3), "records": records,
                     "ratio": f"{by_hand[0] / first:.2f} x by hand"})  # fmt: skip
        rows.append({"what": f"{what}, warm", "seconds": round(best, 3), "records": records,
                     "ratio": f"{min(by_hand[1:]) / best:.2f} x by hand"})  # fmt: skip
    return rows


def measure(bench: Bench, records: int, turns: int, note: Callable[[str], None]) -> list[dict[str, Any]]:
    note("filling topics")
    source, out = bench.fill(records), bench.fill(0)
    results = compare(
        {
            "no-op": lambda: bench.penstock(source, look),
            "no-op, order=key": lambda: bench.penstock(source, look, order="key"),
            "no-op by hand": lambda: bench.by_hand(source, looked_at_by_hand, None),
        },
        records, turns, note,
    )  # fmt: skip
    results += compare(
        {
            "JSON": lambda: bench.penstock(source, price, to=out),
            "JSON, exactly once": lambda: bench.penstock(source, price, to=out, delivery="exactly-once"),
            "JSON by hand": lambda: bench.by_hand(source, priced_by_hand(out), out),
        },
        records, turns, note,
    )  # fmt: skip
    waited_for = max(10_000, records // 10)
    note("10 ms a record")
    few = bench.fill(waited_for, CORES)
    seconds = bench.penstock(few, wait, order="none", concurrency=AT_ONCE)
    ideal = waited_for * WAIT_SECONDS / (AT_ONCE * CORES)
    results.append({"what": "10 ms, 100 at once in 2 tasks", "seconds": round(seconds, 3), "records": waited_for,
                    "ratio": f"{ideal / seconds:.2f} x ideal"})  # fmt: skip
    note("cold start")
    cold = bench.cold(source)
    first = next(row["seconds"] for row in results if row["what"] == "no-op by hand, first")
    results.append({"what": "cold start, as the run reports it", "seconds": cold, "records": records,
                    "ratio": f"{first / cold:.2f} x by hand, first"})  # fmt: skip
    note("latency")
    taken = sorted(bench.latency(note))
    for name, value in (("p50", statistics.median(taken)), ("p99", taken[int(len(taken) * 0.99)])):
        results.append({"what": f"latency {name} at {RATE:,} records/s", "seconds": round(value, 3), "records": 1,
                        "ratio": ""})  # fmt: skip
    Cluster(bench.brokers).delete_topics([source, few, out])
    return results


def main(
    records: int = 3_000_000,
    turns: int = 3,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    progress = Console(stderr=True)
    try:
        with (
            broker(brokers) as address,
            spark_session("benchmark", master=f"local[{CORES}]") as session,
            progress.status("") as status,
        ):
            results = measure(Bench(session, address, folder), records, turns, status.update)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(results, title=f"{records:,} records", as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
