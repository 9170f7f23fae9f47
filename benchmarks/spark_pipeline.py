"""A pipeline from Kafka to Kafka against plain Spark, in one run on one machine: python benchmarks/spark_pipeline.py.

Both run in one session, in turns: records as they are, and JSON that is read, filtered and written again. The plain
query is what one would write without Penstock: no dead letters, no strict JSON, no group offsets.

With ``--dirty`` four topics of JSON go through the same pipeline in turns, each with as many records: a clean one, one
with a few records that cannot be read, one that was written in transactions, and one that was compacted. Every round
has one run of each and begins with another one; each is compared with the clean one of the same round.
"""

import json
import shutil
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Annotated
from uuid import uuid4

import psutil
import typer
from bench import broker, fill
from gaps import fill_and_compact, fill_in_transactions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from rich.table import Table

from penstock import App
from penstock import spark as engine
from penstock.core.reports.events import BatchFinished, Event
from penstock.kafka import Cluster
from penstock.spark.session.spark_session import spark_session

_SCHEMA = "id bigint, customer string, amount double"


@dataclass
class Order:
    id: int
    customer: str
    amount: float


def order(number: int) -> bytes:
    return b'{"id": %d, "customer": "customer-%d", "amount": %d.5}' % (number, number % 1000, number % 100)


def plain(
    session: SparkSession,
    brokers: str,
    source: str,
    target: str,
    *,
    batch: int,
    change: Callable[[DataFrame], DataFrame],
) -> None:
    options = {"kafka.bootstrap.servers": brokers, "kafka.linger.ms": "5", "kafka.compression.type": "lz4"}
    rows = (
        session.readStream.format("kafka")
        .options(**options, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=str(batch))
        .load()
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = change(rows).writeStream.format("kafka").options(**options, topic=target)
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def pipeline(
    session: SparkSession, brokers: str, source: str, target: str, *, batch: int, as_json: bool
) -> list[Event]:
    app = App(f"bench-{uuid4().hex[:8]}")

    @app.pipeline(
        source, value=Order if as_json else bytes, to=target, dead_letter=f"{target}.dead", max_micro_batch=batch
    )
    def copy(rows: DataFrame) -> DataFrame:
        return rows.where("amount > 10") if as_json else rows.select(F.col("_key").alias("key"), "value")

    seen: list[Event] = []
    folder = Path(tempfile.mkdtemp())
    try:
        engine.run(
            app,
            brokers=brokers,
            emit=seen.append,
            stop=threading.Event(),
            until_caught_up=True,
            session=session,
            checkpoint=folder,
        )
    finally:
        shutil.rmtree(folder)
    return seen


def plain_json(rows: DataFrame) -> DataFrame:
    read = rows.select("key", F.from_json(F.col("value").cast("string"), _SCHEMA).alias("order")).select(
        "key", "order.*"
    )
    return read.where("amount > 10").select("key", F.to_json(F.struct("id", "customer", "amount")).alias("value"))


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(
    records: Annotated[int, typer.Option(help="How many records.")] = 2_000_000,
    batch: Annotated[int, typer.Option(help="The most records of one batch.")] = 250_000,
    rounds: Annotated[int, typer.Option(help="How often each runs.")] = 3,
    *,
    dirty: Annotated[bool, typer.Option("--dirty", help="Clean topics against one with unreadable records.")] = False,
    bad: Annotated[int, typer.Option(help="How many records cannot be read, with --dirty.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Pipelines against plain Spark."""
    if dirty:
        with broker(None) as brokers:
            show_dirty(measure_dirty(brokers, records, batch, rounds, bad), records, as_json=as_json)
        return
    with broker(None) as brokers:
        results = measure(brokers, records, batch, rounds)
    if as_json:
        print(json.dumps(results))
        return
    table = Table("", "plain Spark", "pipeline", "ratio", title=f"{records:,} records, medians of {rounds}")
    for name, (theirs, penstocks) in results.items():
        table.add_row(name, f"{records / theirs:,.0f}/s", f"{records / penstocks:,.0f}/s", f"{theirs / penstocks:.2f}")
    Console().print(table)


def measure(brokers: str, records: int, batch: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds of plain Spark and of a pipeline, for each kind of work."""
    source = f"bench-{uuid4().hex[:8]}"
    fill(brokers, source, records, 4, order)
    target = f"{source}.out"
    Cluster(brokers).create_topics([target], partitions=4)
    times: dict[str, tuple[list[float], list[float]]] = {"as they are": ([], []), "JSON": ([], [])}
    with spark_session("benchmark", master="local[2]") as session:
        for number in range(rounds + 1):
            for name, (theirs, penstocks) in times.items():
                is_json = name == "JSON"
                change = plain_json if is_json else lambda rows: rows.select("key", "value")
                first = timed(lambda: plain(session, brokers, source, target, batch=batch, change=change))  # noqa: B023
                second = timed(lambda: pipeline(session, brokers, source, target, batch=batch, as_json=is_json))  # noqa: B023
                if number:  # the first round warms up
                    theirs.append(first)
                    penstocks.append(second)
    return {name: (median(theirs), median(penstocks)) for name, (theirs, penstocks) in times.items()}


@dataclass
class Cost:
    """Of one run: seconds of its batches, and processor seconds of all processes that this one has started."""

    seconds: float
    processor: float


def measure_dirty(brokers: str, records: int, batch: int, rounds: int, bad: int) -> dict[str, list[Cost]]:
    """The cost of each round, by kind of topic."""
    name = f"bench-{uuid4().hex[:8]}"
    topics = {
        kind: f"{name}.{kind.split()[-1]}" for kind in ("clean", f"{bad} unreadable", "transactions", "compacted")
    }
    clean, dirty, transactional, compacted = topics.values()
    every = records // bad  # with the default numbers, all of them are in one partition
    fill(brokers, clean, records, 4, order)
    fill(brokers, dirty, records, 4, lambda number: b"nonsense" if number % every == every // 2 else order(number))
    fill_in_transactions(brokers, transactional, records, order)
    fill_and_compact(brokers, compacted, records, order)
    Cluster(brokers).create_topics([f"{name}.out"], partitions=4)
    costs: dict[str, list[Cost]] = {kind: [] for kind in topics}
    with spark_session("benchmark", master="local[2]") as session:
        for number in range(rounds + 1):
            turns = deque(topics.items())
            turns.rotate(-number)
            for kind, topic in turns:
                cost = cost_of(lambda: pipeline(session, brokers, topic, f"{name}.out", batch=batch, as_json=True))  # noqa: B023
                print(
                    f"round {number}, {kind}: {cost.seconds:.1f} s, processor {cost.processor:.1f} s", file=sys.stderr
                )
                if number:  # the first round warms up
                    costs[kind].append(cost)
    return costs


def cost_of(run: Callable[[], list[Event]]) -> Cost:
    before = processor_seconds()
    seconds = sum(each.seconds for each in run() if isinstance(each, BatchFinished))
    return Cost(seconds, processor_seconds() - before)


def processor_seconds() -> float:
    """Of this process and those that it has started: Spark's JVM, and the broker unless it ran already."""
    this = psutil.Process()
    times = [each.cpu_times() for each in (this, *this.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def show_dirty(costs: Mapping[str, Sequence[Cost]], records: int, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({kind: [asdict(each) for each in found] for kind, found in costs.items()}))
        return
    columns = ("topic", "seconds of batches", "against clean", "processor seconds", "against clean")
    table = Table(*columns, title=f"{records:,} records; the ratios are medians of those of each round")
    for kind, found in costs.items():
        pairs = list(zip(found, costs["clean"], strict=True))
        table.add_row(
            kind,
            " ".join(f"{each.seconds:.1f}" for each in found),
            f"{median(each.seconds / clean.seconds for each, clean in pairs):.2f}",
            " ".join(f"{each.processor:.1f}" for each in found),
            f"{median(each.processor / clean.processor for each, clean in pairs):.2f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
