"""What one would write by hand with Spark's connector, for benchmarks/spark_engine.py to compare with."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.session.spark_session import spark_session

CORES = 2


@dataclass
class Order:
    id: int
    amount: int
    note: str


def price(order: Order) -> dict[str, int]:
    return {"id": order.id, "total": order.amount * 120 // 100}


def by_hand(
    session: SparkSession, brokers: str, source: str, transform: Callable[[DataFrame], DataFrame], sink: str | None
) -> float:
    """A batch as one would write it: Spark's source, a function on the rows, and Spark's sink or nothing.

    Only the columns that the function needs go to Python: with the headers, Spark 4.0.0 takes several times as long.
    """
    began = time.perf_counter()
    kafka = {"kafka.bootstrap.servers": brokers}
    rows = transform(
        session.read.format("kafka").options(**kafka).option("subscribe", source).load()
    )  # fmt: skip
    if sink is None:
        rows.write.format("noop").mode("append").save()
    else:
        options = {**kafka, "kafka.linger.ms": "5", "kafka.compression.type": "lz4"}
        rows.write.format("kafka").options(**options).save()
    return time.perf_counter() - began


def say_cold_by_hand(brokers: str, source: str) -> None:
    with spark_session("benchmark", master=f"local[{CORES}]") as session:
        print(by_hand(session, brokers, source, looked_at_by_hand, None))


def looked_at_by_hand(rows: DataFrame) -> DataFrame:
    def handle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            count = 0
            for value in batch.column("value").to_pylist():
                count += len(value)
            yield pa.RecordBatch.from_arrays([pa.array([count], pa.int64())], names=["bytes"])

    return rows.select("value").mapInArrow(handle, "bytes long")


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
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["topic", "key", "value"])

    return lambda rows: rows.select("key", "value").mapInArrow(handle, "topic string, key binary, value binary")
