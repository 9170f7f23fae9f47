"""Exactly-once against at-least-once on Spark, in one run on one machine: python benchmarks/spark_exactly_once.py.

A handler that returns its value, from one topic to another, on records of 100 bytes with 1,000 keys. The two take
turns in one session, after a run of each that is not counted; a row is the median of its rounds.
"""

import statistics
import threading
import time
from typing import Annotated, Any, Literal
from uuid import uuid4

import typer
from bench import broker, fill, show
from pyspark.sql import SparkSession

from penstock import App
from penstock.core.reports.events import Event, Started, Stopping
from penstock.kafka import Cluster
from penstock.spark import run
from penstock.spark.session.spark_session import spark_session

Delivery = Literal["at-least-once", "exactly-once"]
DELIVERIES: tuple[Delivery, ...] = ("at-least-once", "exactly-once")


class Stopwatch:
    """From the start of the query to the moment when all is written."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self.began = time.perf_counter()
        if isinstance(event, Stopping):
            self.ended = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def seconds(brokers: str, session: SparkSession, source: str, delivery: Delivery, in_flight: int) -> float:
    """One run from the first record to the last, in a group and to a topic of its own."""
    group = f"bench-{uuid4().hex[:8]}"
    app = App(group)

    @app.consume(source, to=f"{group}.out", delivery=delivery, max_in_flight=in_flight)
    def copy(value: bytes) -> bytes:
        return value

    watch = Stopwatch()
    run(app, brokers=brokers, emit=watch, stop=threading.Event(), until_caught_up=True, session=session)
    Cluster(brokers).delete_topics([f"{group}.out"])
    return watch.seconds


def measure(brokers: str, records: int, *, partitions: int, rounds: int, in_flight: int) -> list[dict[str, Any]]:
    source = f"bench-{uuid4().hex[:8]}"
    fill(brokers, source, records, partitions)
    taken: dict[Delivery, list[float]] = {delivery: [] for delivery in DELIVERIES}
    try:
        with spark_session("benchmark") as session:
            for number in range(rounds + 1):
                for delivery in DELIVERIES:
                    spent = seconds(brokers, session, source, delivery, in_flight)
                    if number:
                        taken[delivery].append(spent)
    finally:
        Cluster(brokers).delete_topics([source])
    medians = {delivery: statistics.median(each) for delivery, each in taken.items()}
    return [
        {
            "what": delivery,
            "records": records,
            "seconds": median,
            "ratio": medians["at-least-once"] / median,
            "rounds": taken[delivery],
        }
        for delivery, median in medians.items()
    ]


def main(  # noqa: PLR0917 - typer reads them as options
    records: int = 500_000,
    partitions: int = 4,
    rounds: int = 3,
    in_flight: int = 10_000,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    with broker(brokers) as address:
        results = measure(address, records, partitions=partitions, rounds=rounds, in_flight=in_flight)
    show(results, title=f"{records:,} records, {partitions} partitions", as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
