"""Runs the demo: produces orders, runs the app on each engine, and compares the results."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from penstock import engine as local
from penstock.app import App, Handler
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.reports.events import Event, Stopped
from penstock.core.reports.record_counts import Counts
from penstock.demo import shop
from penstock.demo.demo_report import DemoReport, EngineReport, PartitionReport
from penstock.demo.engine_comparison import compare_dead_letters, compare_outputs
from penstock.demo.order_generator import expected_counts, make_orders
from penstock.devkit.chosen_kafka import choose_kafka
from penstock.errors import PenstockError, SetupError
from penstock.kafka import Cluster
from penstock.kafka.read.read_records import read_topic
from penstock.ops.produce_records import produce

PARTITIONS = 6


@dataclass(frozen=True)
class DemoOptions:
    records: int = 100_000
    engines: tuple[str, ...] = ("spark", "local")
    brokers: str | None = None
    keep: bool = False


class Show(Protocol):
    """Shows the progress of the demo."""

    def step(self, text: str, *, done: int = 0, total: int = 0, unit: str = "records") -> None: ...
    def event(self, event: Event) -> None: ...


def run_demo(options: DemoOptions, show: Show, stop: threading.Event) -> DemoReport:
    """Produce orders, run the app on each engine and check the results. Without ``keep``, remove everything again."""
    if "spark" in options.engines:
        _fetch_spark(show)
    with choose_kafka(options.brokers, keep=options.keep, progress=show.step) as kafka:
        cluster = Cluster(kafka.brokers)
        suffix = _free_suffix(cluster)
        source = f"orders{suffix}"
        twins = {engine: _shop_for(engine, source, suffix) for engine in options.engines}
        with _topics_removed(cluster, source, list(twins.values()), really=not (options.keep or kafka.disposable)):
            _produce(cluster, source, options.records, show, stop)
            reports = [_run_engine(engine, app, cluster, show, stop) for engine, app in twins.items()]
            return _judge(cluster, source, options.records, reports, show)


@contextmanager
def _topics_removed(cluster: Cluster, source: str, apps: Sequence[App], *, really: bool) -> Iterator[None]:
    """Remove the topics and groups of the demo afterwards. An error of the demo takes precedence over one of this."""
    try:
        yield
    except BaseException:
        if really:
            with suppress(PenstockError):
                _clean_up(cluster, source, apps)
        raise
    if really:
        _clean_up(cluster, source, apps)


def _free_suffix(cluster: Cluster) -> str:
    """Return a random suffix if the topic ``orders`` exists, else an empty one."""
    return f"-{uuid4().hex[:6]}" if "orders" in cluster.topics() else ""


def _fetch_spark(show: Show) -> None:
    """Check Spark first, before anything is started. The error says what is missing, and how to run without Spark."""
    try:
        from penstock import spark  # noqa: PLC0415 - takes long, and needs an extra

        spark.fetch_jars(None, progress=show.step)
    except SetupError as error:
        raise SetupError(
            error.problem, hint=f"{error.hint} Without Spark, run `penstock demo --engine local`."
        ) from error


def _shop_for(engine: str, source: str, suffix: str) -> App:
    def rename(handler: Handler) -> dict[str, object]:
        return {
            "topics": (source,),
            "group": f"shop-{engine}{suffix}",
            "to": f"{handler.to}-{engine}{suffix}",
            "dead_letter": f"{handler.dead_letter}-{engine}{suffix}",
        }

    return shop.app.variant(f"shop-{engine}{suffix}", rename)


def _produce(cluster: Cluster, topic: str, count: int, show: Show, stop: threading.Event) -> None:
    doing = f"Producing {count:,} orders"
    show.step(doing, total=count)
    cluster.create_topics([topic], partitions=PARTITIONS)
    produce(cluster, _orders(topic, count, stop), progress=lambda done: show.step(doing, done=done, total=count))


def _orders(topic: str, count: int, stop: threading.Event) -> Iterator[ProducerRecord]:
    for key, value in make_orders(count):
        _check(stop)
        yield ProducerRecord(topic, key, value, ())


def _run_engine(engine: str, app: App, cluster: Cluster, show: Show, stop: threading.Event) -> EngineReport:
    show.step(f"Running the app on the {engine} engine")
    stopped: list[Stopped] = []

    def emit(event: Event) -> None:
        if isinstance(event, Stopped):
            stopped.append(event)
        show.event(event)

    _runner(engine)(app, cluster.brokers, emit, stop)
    _check(stop)
    return _report(engine, app.handlers[0], cluster, stopped[0])


Runner = Callable[[App, str, Callable[[Event], None], threading.Event], None]


def _runner(engine: str) -> Runner:
    return _run_on_spark if engine == "spark" else _run_locally


def _run_locally(app: App, brokers: str, emit: Callable[[Event], None], stop: threading.Event) -> None:
    local.run(app, brokers=brokers, emit=emit, stop=stop, until_caught_up=True)


def _run_on_spark(app: App, brokers: str, emit: Callable[[Event], None], stop: threading.Event) -> None:
    from penstock import spark  # noqa: PLC0415 - takes long, and needs an extra

    with tempfile.TemporaryDirectory(prefix="penstock-demo-checkpoint-") as checkpoint:
        spark.run(app, brokers=brokers, emit=emit, stop=stop, until_caught_up=True, checkpoint=checkpoint)


def _report(engine: str, handler: Handler, cluster: Cluster, stopped: Stopped) -> EngineReport:
    tps = cluster.topic_partitions(handler.topics)
    ends, committed = cluster.end_offsets(tps), cluster.committed(handler.group, tps)
    output, dead_letters = str(handler.to), str(handler.dead_letter)
    return EngineReport(
        engine=engine,
        group=handler.group,
        output=output,
        dead_letters=dead_letters,
        counts=Counts(stopped.read, stopped.written, stopped.dead_lettered, stopped.skipped),
        in_output=_size(cluster, output),
        in_dead_letters=_size(cluster, dead_letters),
        seconds=stopped.seconds,
        partitions=tuple(PartitionReport(tp[1], ends[tp], committed.get(tp)) for tp in tps),
    )


def _size(cluster: Cluster, topic: str) -> int:
    return sum(cluster.end_offsets(cluster.topic_partitions([topic])).values())


def _judge(cluster: Cluster, source: str, count: int, reports: Sequence[EngineReport], show: Show) -> DemoReport:
    expected = expected_counts(count)
    problems = [problem for report in reports for problem in report.problems(expected)]
    agreement = None
    if len(reports) > 1:
        show.step("Comparing what both engines wrote")
        differences = _compare(cluster.brokers, *reports)
        problems += differences
        if not differences:
            agreement = (
                f"{reports[0].in_output:,} outputs in the same order for each key, and "
                f"{reports[0].in_dead_letters:,} dead letters with the same reasons"
            )
    return DemoReport(cluster.brokers, source, expected, tuple(reports), agreement, tuple(problems))


def _compare(brokers: str, one: EngineReport, other: EngineReport) -> list[str]:
    return [
        *compare_outputs(read_topic(brokers, one.output), read_topic(brokers, other.output)),
        *compare_dead_letters(read_topic(brokers, one.dead_letters), read_topic(brokers, other.dead_letters)),
    ]


def _clean_up(cluster: Cluster, source: str, apps: Sequence[App]) -> None:
    handlers = [handler for app in apps for handler in app.handlers]
    targets = [topic for handler in handlers for topic in (handler.to, handler.dead_letter) if topic is not None]
    existing = cluster.topics()
    cluster.delete_topics([topic for topic in (source, *targets) if topic in existing])
    for handler in handlers:
        cluster.delete_group(handler.group)


def _check(stop: threading.Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt
