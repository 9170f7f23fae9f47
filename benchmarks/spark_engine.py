"""The Spark engine against what one would write by hand, in one run on one machine: python benchmarks/spark_engine.py.

Throughput: JSON in, JSON out, from Kafka to Kafka, against ``mapInArrow`` with the same work. Both read as many records
a batch at most and take turns, and the best of each counts: the first runs warm up the JVM.
Parallelism: a handler that waits for 10 ms, 100 at once in each of two tasks, against a loop in ``mapInPandas``.
"""

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import typer
from bench import broker, fill, show
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from penstock import App
from penstock import spark as engine
from penstock.kafka import Cluster
from penstock.spark.pipelines.arrow_columns import SINK_SCHEMA
from penstock.spark.session.spark_session import spark_session

PARTITIONS = 2
TURNS = 2
BATCH_RECORDS = 250_000
# A loop is through with 200 a second.
LOOP_RECORDS = 2_000
WAIT_SECONDS = 0.01

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def order(number: int) -> bytes:
    return b'{"id":%d,"amount":%d,"note":"%s"}' % (number, number % 977, b"x" * 60)


def price(order: dict[str, Any]) -> dict[str, Any]:
    """The work that all have in common."""
    return {"id": order["id"], "total": order["amount"] * 120 // 100}


def wait(value: bytes) -> None:
    time.sleep(WAIT_SECONDS)


class Bench:
    def __init__(self, session: SparkSession, brokers: str, folder: Path) -> None:
        self._session = session
        self.brokers = brokers
        self._folder = folder

    def fill(self, records: int) -> str:
        """A new topic with so many records, or none."""
        topic = f"bench-{uuid4().hex[:8]}"
        fill(self.brokers, topic, records, PARTITIONS, order)
        return topic

    def penstock(self, source: str, function: Callable[..., Any], **options: Any) -> float:
        app = App(uuid4().hex)
        app.consume(source, max_micro_batch=BATCH_RECORDS, **options)(function)
        began = time.perf_counter()
        engine.run(
            app,
            brokers=self.brokers,
            emit=lambda _: None,
            stop=threading.Event(),
            until_caught_up=True,
            session=self._session,
            checkpoint=self._checkpoint(),
        )
        return time.perf_counter() - began

    def by_hand(self, source: str, transform: Callable[[DataFrame], DataFrame]) -> float:
        """A streaming query as one would write it: Spark's source, a function on the rows, Spark's sink."""
        began = time.perf_counter()
        kafka = {"kafka.bootstrap.servers": self.brokers}
        stream = self._session.readStream.format("kafka").options(**kafka).option("subscribe", source)
        stream = stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(BATCH_RECORDS))
        rows = transform(stream.option("includeHeaders", "true").load())
        sink = rows.writeStream.format("kafka").options(**kafka)
        sink = sink.option("kafka.linger.ms", "5").option("kafka.compression.type", "lz4")
        sink.option("checkpointLocation", self._checkpoint()).trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - began

    def _checkpoint(self) -> str:
        return str(self._folder / uuid4().hex)


def mapped_by_hand(out: str) -> Callable[[DataFrame], DataFrame]:
    decode, encode, work = msgspec.json.decode, msgspec.json.encode, price

    def handle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [encode(work(decode(value))) for value in batch.column("value").to_pylist()]
            count = len(values)
            columns = [
                pa.array([out] * count, pa.string()),
                batch.column("key"),
                pa.array(values, pa.binary()),
                pa.nulls(count, _HEADERS),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["topic", "key", "value", "headers"])

    return lambda rows: rows.mapInArrow(handle, SINK_SCHEMA)


def looped_by_hand(out: str) -> Callable[[DataFrame], DataFrame]:
    waited = WAIT_SECONDS

    def handle(frames: Iterable[Any]) -> Iterator[Any]:
        for frame in frames:
            for _ in frame["value"]:
                time.sleep(waited)
            yield frame.iloc[:0][["key", "value"]].assign(topic=out)

    return lambda rows: rows.mapInPandas(handle, "key binary, value binary, topic string")


def measure(bench: Bench, records: int, note: Callable[[str], None]) -> list[dict[str, Any]]:
    note("filling topics")
    waited_for = records // 5
    source, few, many, out = map(bench.fill, (records, LOOP_RECORDS, waited_for, 0))
    ways: dict[str, Callable[[], float]] = {
        "mapInArrow by hand": lambda: bench.by_hand(source, mapped_by_hand(out)),
        "penstock, order=partition": lambda: bench.penstock(source, price, to=out),
        "penstock, order=key": lambda: bench.penstock(source, price, to=out, order="key"),
    }
    times: dict[str, list[float]] = {what: [] for what in ways}
    for turn in range(TURNS + 1):
        for what, run in ways.items():
            note(f"{what}, turn {turn} of {TURNS}")
            seconds = run()
            if turn:
                times[what].append(seconds)
    best = min(times["mapInArrow by hand"])
    results = [
        {"what": what, "seconds": round(min(each), 3), "median": round(statistics.median(each), 3), "records": records,
         "ratio": f"{best / min(each):.2f} x by hand"}
        for what, each in times.items()
    ]  # fmt: skip
    note("mapInPandas loop")
    loop = bench.by_hand(few, looped_by_hand(out))
    results.append({"what": "10 ms, a loop in mapInPandas", "seconds": round(loop, 3), "records": LOOP_RECORDS,
                    "ratio": "1 x the loop"})  # fmt: skip
    for order in ("key", "none"):
        note(f"10 ms, order={order}")
        seconds = bench.penstock(many, wait, order=order, concurrency=100)
        times_faster = (waited_for / seconds) / (LOOP_RECORDS / loop)
        results.append({"what": f"10 ms, penstock, 100 a task, order={order}", "seconds": round(seconds, 3),
                        "records": waited_for, "ratio": f"{times_faster:.0f} x the loop"})  # fmt: skip
    Cluster(bench.brokers).delete_topics([source, few, many, out])
    return results


def main(
    records: int = 1_000_000,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    progress = Console(stderr=True)
    try:
        with (
            broker(brokers) as address,
            spark_session("benchmark", master=f"local[{PARTITIONS}]") as session,
            progress.status("") as status,
        ):
            results = measure(Bench(session, address, folder), records, status.update)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(results, title=f"{records:,} records", as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
