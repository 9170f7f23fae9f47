"""Two ways to drive the same tasks on Spark, in one session and one run: python benchmarks/spark_data_source.py.

- ``jobs``: the driver of the Spark engine, which starts a Spark job for each slice.
- ``data source``: a streaming data source in Python (Spark 4), whose partitions are slices. Spark plans micro-batches,
  and keeps offsets in a checkpoint; after each batch, ``foreachBatch`` commits them to the group. (A source's own
  ``commit`` comes only with the next batch, which may be long in coming.)

For each way: records per second with a handler that looks at each value; the seconds of the smallest job or batch; the
latency from producing a record to its output at a light load; and the same while another partition has a slow record.
docs/internals/spark.md says what was decided, and why.
"""

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Annotated, Any
from uuid import uuid4

import typer
from bench import broker, fill
from output_latency import latencies, percentile, produce_steadily, stamped_topic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console
from rich.table import Table

from penstock import App
from penstock import spark as engine
from penstock.core.progress.slices import Slice
from penstock.kafka import Cluster, make_producer
from penstock.spark.driver.packing import pack
from penstock.spark.driver.slice_jobs import JobEnded, SliceJobs
from penstock.spark.session.spark_session import spark_session
from penstock.spark.tasks.run_slices import DriverMembership, run_slices

PARTITIONS = 4
CORES = 2
RATE = 200
SECONDS = 10.0
SLOW_SECONDS = 3.0
SMALLEST = 30
"""So many of the smallest jobs or batches."""

Function = Callable[[bytes], Any]


def look(value: bytes) -> None:
    len(value)


def echo(value: bytes) -> bytes:
    return value


def echo_or_wait(value: bytes) -> bytes | None:
    if value == b"slow":
        time.sleep(SLOW_SECONDS)
        return None
    return value


class SliceSource(DataSource):
    """Options: ``topic``, ``brokers`` and the packed handler, in hexadecimal digits."""

    @classmethod
    def name(cls) -> str:
        return "slices"

    def schema(self) -> str:
        return "partition int, reached long"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's names
        return SliceReader(self.options)


class SlicePartition(InputPartition):
    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        self.slice = Slice((topic, partition), start, end)


class SliceReader(DataSourceStreamReader):
    """Spark calls all but ``read`` in one Python process beside its driver, and ``read`` in tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._topic = options["topic"]
        self._packed = bytes.fromhex(options["packed"])
        self._brokers = options["brokers"]
        self._cluster: Cluster | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}  # it has connections, which tasks do not need

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {str(partition): 0 for _, partition in self._connected().topic_partitions([self._topic])}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        cluster = self._connected()
        ends = cluster.stable_ends(cluster.topic_partitions([self._topic]))
        return {str(partition): end for (_, partition), end in ends.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        # A range that was planned has to be read to its end: Spark has no word for "so far, and no further".
        moved = [each for each in end if end[each] > start.get(each, 0)]
        return [SlicePartition(self._topic, int(each), start.get(each, 0), end[each]) for each in moved]

    def read(self, partition: Any) -> Iterator[tuple[int, int]]:
        (result,) = run_slices(self._packed, [partition.slice], DriverMembership())
        if result.error is not None:
            raise result.error
        yield partition.slice.tp[1], partition.slice.end

    def _connected(self) -> Cluster:
        self._cluster = self._cluster or Cluster(self._brokers)
        return self._cluster


class Bench:
    def __init__(self, session: SparkSession, brokers: str) -> None:
        self.session, self.brokers, self.cluster = session, brokers, Cluster(brokers)
        self.query: StreamingQuery | None = None

    def app(self, function: Function, source: str, **options: Any) -> App:
        app = App(f"bench-{uuid4().hex[:8]}")
        app.consume(source, **options)(function)
        return app

    def packed(self, app: App) -> bytes:
        return pack(app.handlers[0], self.brokers, is_local=True, per_record=False)

    def committed(self, app: App, source: str) -> int:
        return sum(self.cluster.committed(app.handlers[0].group, self.cluster.topic_partitions([source])).values())

    def wait_for(self, records: int, app: App, source: str) -> None:
        while self.committed(app, source) < records:
            if self.query is not None and (failure := self.query.exception()) is not None:
                raise failure
            time.sleep(0.02)

    @contextmanager
    def jobs(self, app: App) -> Iterator[Callable[[], list[float]]]:
        stop = threading.Event()

        def run() -> None:
            engine.run(app, brokers=self.brokers, emit=lambda _: None, stop=stop, session=self.session)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield lambda: self.seconds_of_jobs(app)
        finally:
            stop.set()
            thread.join()

    @contextmanager
    def data_source(self, app: App) -> Iterator[Callable[[], list[float]]]:
        (handler,) = app.handlers
        self.session.dataSource.register(SliceSource)
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as checkpoint:
            options = {"topic": handler.topics[0], "brokers": self.brokers}
            rows = self.session.readStream.format("slices").options(**options, packed=self.packed(app).hex()).load()

            def commit(results: DataFrame, _batch: int) -> None:
                reached = {(handler.topics[0], row.partition): row.reached for row in results.collect()}
                self.cluster.commit(handler.group, reached)

            sink = rows.writeStream.foreachBatch(commit).option("checkpointLocation", checkpoint)
            query = self.query = sink.start()
            try:
                yield lambda: self.seconds_of_batches(query, handler.topics[0], app)
            finally:
                self.query = None
                query.stop()

    def seconds_of_jobs(self, app: App) -> list[float]:
        """The seconds of a job with the smallest slice, as the driver starts it."""
        ended: SimpleQueue[JobEnded] = SimpleQueue()
        jobs, taken = SliceJobs(self.session, self.packed(app), ended), []
        for _ in range(SMALLEST):
            began = time.perf_counter()
            jobs.start([[Slice((app.handlers[0].topics[0], 0), 0, 1)]], DriverMembership())
            found = ended.get()
            if found.error is not None:
                raise found.error
            taken.append(time.perf_counter() - began)
        return taken

    def seconds_of_batches(self, query: StreamingQuery, source: str, app: App) -> list[float]:
        """The seconds of a micro-batch with the smallest slice, as Spark reports them."""
        producer, before = make_producer(self.brokers, settings={"linger.ms": 0}), self.committed(app, source)
        for number in range(1, SMALLEST + 1):
            producer.produce(source, b"x", partition=0)
            producer.flush(60)
            self.wait_for(before + number, app, source)
        found = [each["durationMs"] for each in query.recentProgress if each["numInputRows"]]
        return [each["triggerExecution"] / 1000 for each in found[-SMALLEST:]]


Way = Callable[[App], Any]


def measure(bench: Bench, records: int, turns: int, note: Callable[[str], None]) -> list[dict[str, Any]]:
    ways: dict[str, Way] = {"jobs": bench.jobs, "data source": bench.data_source}
    results: dict[str, dict[str, Any]] = {name: {"what": name} for name in ways}
    note("filling a topic")
    source = f"bench-{uuid4().hex[:8]}"
    fill(bench.brokers, source, records, PARTITIONS)
    for turn in range(turns + 1):
        for name, way in ways.items():
            note(f"{name}: throughput, turn {turn} of {turns}")
            seconds = throughput(bench, way, source, records)
            if turn:  # the first one warms up
                best = results[name].get("records/s", 0.0)
                results[name]["records/s"] = max(best, records / seconds)
    for name, way in ways.items():
        note(f"{name}: smallest slices")
        results[name]["smallest, s"] = smallest(bench, way)
        note(f"{name}: light load")
        taken = light_load(bench, way, echo)
        results[name] |= {"p50, s": percentile(taken, 0.5), "p99, s": percentile(taken, 0.99)}
        note(f"{name}: a slow record")
        taken = light_load(bench, way, echo_or_wait, slow=True)
        results[name]["p99 beside a slow record, s"] = percentile(taken, 0.99)
    bench.cluster.delete_topics([source])
    return list(results.values())


def throughput(bench: Bench, way: Way, source: str, records: int) -> float:
    app = bench.app(look, source)
    began = time.perf_counter()
    with way(app):
        bench.wait_for(records, app, source)
        return time.perf_counter() - began


def smallest(bench: Bench, way: Way) -> float:
    source = f"bench-{uuid4().hex[:8]}"
    fill(bench.brokers, source, 1, 1)
    app = bench.app(look, source)
    with way(app) as seconds_of_smallest:
        bench.wait_for(1, app, source)
        return statistics.median(seconds_of_smallest())


def light_load(bench: Bench, way: Way, function: Function, *, slow: bool = False) -> list[float]:
    """The latencies of the records of all partitions but the last, which may have a slow record."""
    source, out = f"bench-{uuid4().hex[:8]}", stamped_topic(bench.brokers, PARTITIONS)
    bench.cluster.create_topics([source], partitions=PARTITIONS)
    app = bench.app(function, source, to=out)
    with way(app):
        quick = PARTITIONS - 1
        written = produce_steadily(bench.brokers, source, partitions=quick, rate=RATE, seconds=SECONDS / 2)
        if slow:
            producer = make_producer(bench.brokers, settings={})
            producer.produce(source, b"slow", partition=quick)
            producer.flush(60)
        written += produce_steadily(bench.brokers, source, partitions=quick, rate=RATE, seconds=SECONDS / 2)
        bench.wait_for(written + slow, app, source)
    taken = latencies(bench.brokers, out, skip=0.4)
    bench.cluster.delete_topics([source, out])
    return taken


def show(results: list[dict[str, Any]], *, title: str) -> None:
    table = Table(*results[0], title=title)
    for row in results:
        table.add_row(*(each if isinstance(each, str) else f"{each:,.3g}" for each in row.values()))
    Console().print(table)


def main(
    records: int = 1_000_000,
    turns: int = 2,
    brokers: str | None = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,  # noqa: FBT002
) -> None:
    progress = Console(stderr=True)
    with broker(brokers) as address, spark_session("benchmark", master=f"local[{CORES}]", packages=None) as session:
        results = measure(Bench(session, address), records, max(1, turns), progress.print)
    if as_json:
        print(json.dumps(results, indent=2))
    else:
        show(results, title=f"{records:,} records")


if __name__ == "__main__":
    typer.run(main)
