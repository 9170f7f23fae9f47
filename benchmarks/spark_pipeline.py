"""A pipeline from Kafka to Kafka against plain Spark, in one run on one machine: python benchmarks/spark_pipeline.py.

Both run in one session, in turns: records as they are, and JSON that is read, filtered and written again. The plain
query is what one would write without Penstock: no dead letters, no strict JSON, no group offsets.

With ``--dirty`` three topics of JSON go through the same pipeline in turns: a clean one, one with a few records that
cannot be read, and a clean one that was written in transactions.
"""

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated
from uuid import uuid4

import typer
from bench import broker, fill
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from rich.table import Table

from penstock import App
from penstock import spark as engine
from penstock.core.events import BatchFinished, Event
from penstock.kafka import Cluster, make_producer
from penstock.spark.session import spark_session

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
            show_dirty(measure_dirty(brokers, records, batch, rounds, bad), as_json=as_json)
        return
    with broker(None) as brokers:
        results = measure(brokers, records, batch, rounds)
    if as_json:
        print(json.dumps(results))
        return
    table = Table("", "plain Spark", "pipeline", "ratio", title=f"{records:,} records, medians of {rounds}")
    for name, (theirs, ours) in results.items():
        table.add_row(name, f"{records / theirs:,.0f}/s", f"{records / ours:,.0f}/s", f"{theirs / ours:.2f}")
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
            for name, (theirs, ours) in times.items():
                is_json = name == "JSON"
                change = plain_json if is_json else lambda rows: rows.select("key", "value")
                first = timed(lambda: plain(session, brokers, source, target, batch=batch, change=change))  # noqa: B023
                second = timed(lambda: pipeline(session, brokers, source, target, batch=batch, as_json=is_json))  # noqa: B023
                if number:  # the first round warms up
                    theirs.append(first)
                    ours.append(second)
    return {name: (median(theirs), median(ours)) for name, (theirs, ours) in times.items()}


def measure_dirty(brokers: str, records: int, batch: int, rounds: int, bad: int) -> dict[str, list[float]]:
    """Seconds of batches, for each kind of topic; in one round each kind has one run."""
    name = f"bench-{uuid4().hex[:8]}"
    topics = {kind: f"{name}.{kind.split()[0]}" for kind in ("clean", "dirty", "transactional")}
    fill(brokers, topics["clean"], records, 4, order)
    every = records // bad
    fill(
        brokers,
        topics["dirty"],
        records,
        4,
        lambda number: b"nonsense" if number % every == every // 2 else order(number),
    )
    fill_in_transactions(brokers, topics["transactional"], records)
    Cluster(brokers).create_topics([f"{name}.out"], partitions=4)
    times: dict[str, list[float]] = {kind: [] for kind in topics}
    with spark_session("benchmark", master="local[2]") as session:
        for number in range(rounds + 1):
            for kind, topic in topics.items():
                seen = pipeline(session, brokers, topic, f"{name}.out", batch=batch, as_json=True)
                seconds = sum(each.seconds for each in seen if isinstance(each, BatchFinished))
                Console(stderr=True).print(f"round {number}, {kind}: {seconds:.1f} s")
                if number:  # the first round warms up
                    times[kind].append(seconds)
    return times


def fill_in_transactions(brokers: str, topic: str, records: int, *, each: int = 1_000) -> None:
    Cluster(brokers).create_topics([topic], partitions=4)
    producer = make_producer(brokers, settings={"linger.ms": 50}, transactional_id=topic)
    producer.init_transactions()
    for start in range(0, records, each):
        producer.begin_transaction()
        for number in range(start, min(start + each, records)):
            producer.produce(topic, value=order(number), partition=number % 4)
        producer.commit_transaction()


def show_dirty(times: dict[str, list[float]], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(times))
        return
    table = Table("topic", "seconds of batches", "against clean, median of rounds", title="Unreadable records and gaps")
    for kind, seconds in times.items():
        ratio = median(one / clean for one, clean in zip(seconds, times["clean"], strict=True))
        table.add_row(kind, " ".join(f"{each:.1f}" for each in seconds), f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
