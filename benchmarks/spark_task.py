"""What a task of the Spark engine costs for each record: python benchmarks/spark_task.py.

It runs slices in this process, one after the other and without Spark, so what it measures is the task alone: the
processor time of the task's thread, which reads, calls the handler and writes, and that of the Kafka client's threads.
On a busy machine these figures vary much less than seconds do. The first slice of each way is not shown.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import typer
from bench import broker, fill
from rich.console import Console
from rich.table import Table
from spark_by_hand import price
from spark_engine import look, order

from penstock import App
from penstock.core.progress.slices import Slice
from penstock.kafka import Cluster
from penstock.spark.driver.packing import pack
from penstock.spark.tasks.run_slices import DriverMembership, run_slices

PARTITIONS = 4


def main(records: int = 500_000, brokers: str | None = None) -> None:
    """Reads ``records`` of each partition in each way."""
    table = Table("what", "records/s", "task's thread", "client's threads", title="microseconds for each record")
    with broker(brokers) as address:
        source, out = f"bench-{uuid4().hex[:8]}", f"bench-{uuid4().hex[:8]}"
        fill(address, source, records * PARTITIONS, PARTITIONS, order)
        fill(address, out, 0, PARTITIONS)
        ways: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
            "no-op": (look, {}),
            "JSON": (price, {"to": out}),
            "JSON, exactly once": (price, {"to": out, "delivery": "exactly-once"}),
        }
        for what, (function, options) in ways.items():
            for seconds, own, others in slices(address, source, records, function, options)[1:]:
                each = [f"{1e6 * spent / records:.2f}" for spent in (own, others)]
                table.add_row(what, f"{records / seconds:,.0f}", *each)
        Cluster(address).delete_topics([source, out])
    Console().print(table)


def slices(
    brokers: str, source: str, records: int, function: Callable[..., Any], options: Mapping[str, Any]
) -> list[tuple[float, float, float]]:
    """A slice of each partition: its seconds, the processor seconds of the task's thread, and those of all others."""
    app = App(uuid4().hex)
    app.consume(source, **options)(function)
    packed = pack(app.wired_handlers()[0], brokers, is_local=True, per_record=False)
    found = []
    for partition in range(PARTITIONS):
        before = _now()
        [result] = run_slices(packed, [Slice((source, partition), 0, records)], DriverMembership())
        if result.error is not None:
            raise result.error
        seconds, own, everything = (now - then for now, then in zip(_now(), before, strict=True))
        found.append((seconds, own, everything - own))
    return found


def _now() -> tuple[float, float, float]:
    return time.perf_counter(), time.thread_time(), time.process_time()


if __name__ == "__main__":
    typer.run(main)
