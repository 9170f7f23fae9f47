"""Runs an app on Spark, from start to a clean stop. ``run`` shows the steps in order."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.app import App, Handler, Pipeline, refuse_unsupported
from penstock.app.pipelines import Span
from penstock.codecs import prepare_formats
from penstock.core.reports.events import Event
from penstock.errors import ConfigError
from penstock.kafka import Cluster, prepare_topics
from penstock.kafka.admin.source_partitions import check_sources
from penstock.spark.driver.driver_control import SparkControl
from penstock.spark.driver.handler_driver import HandlerDriver
from penstock.spark.driver.next_slices import tasks_commit
from penstock.spark.driver.packing import pack
from penstock.spark.driver.slice_jobs import SliceJobs
from penstock.spark.driver.spark_errors import session_error
from penstock.spark.internals import JvmError, check_version, errors_raised_only, is_connect
from penstock.spark.pipelines.backfill import Backfill, plan_backfill
from penstock.spark.pipelines.checkpoint import checked_root, default_root
from penstock.spark.pipelines.output_query import PipelineQuery
from penstock.spark.pipelines.pipeline_plan import plan_pipeline
from penstock.spark.session.executors import check_executors
from penstock.spark.session.masters import is_local
from penstock.spark.session.shipping import shipment_of, shipped
from penstock.spark.session.spark_session import spark_session

# How long a driver may take to leave its group, beyond what its handler's drain_timeout allows.
_LEAVE_SECONDS = 60.0
_WATCH_SECONDS = 0.05
# Spark Connect does not say how many tasks run at once.
_CONNECT_SLOTS = 8


def run(
    app: App,
    *,
    brokers: str,
    emit: Callable[[Event], None],
    stop: threading.Event,
    until_caught_up: bool = False,
    per_record: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    checkpoint: Path | str | None = None,
    session: SparkSession | None = None,
    span: Span | None = None,
) -> None:
    """Run all handlers and pipelines of the app until ``stop`` is set, all have caught up, or one fails.

    ``checkpoint`` is a local folder for the checkpoints of pipelines. Uses ``session``, which may be a Spark Connect
    session if the app has no pipelines, or else a session that runs in this process, and leaves it running; otherwise
    starts one on ``master`` with Spark's settings ``conf``. Sends the app's code to executors on other machines.
    With a ``span``, only runs the app's pipelines once over that range. With ``per_record``, there are also events for
    single records of handlers. Several threads call ``emit``.
    """
    _check_names(app)
    _check_options(app)
    handlers = app.wired_handlers()
    prepare_formats(app)
    cluster = Cluster(brokers, app.settings)
    control = SparkControl(app, emit)
    with app.controlled_by(control):
        prepare_topics(app, cluster, emit)
        if span is not None:
            backfills = _plan_backfills(app, cluster, span)
            with _session(app, session, master, conf) as spark:
                for backfill in backfills:
                    backfill.run(spark, emit, stop)
            return
        root = checked_root(checkpoint) if checkpoint is not None else default_root(cluster.id())
        check_sources(app, cluster)
        for handler in handlers:
            pack(handler, brokers, is_local=True, per_record=per_record)  # raises if it cannot be sent
        drivers = [
            HandlerDriver(handler, cluster, root=root, emit=emit, until_caught_up=until_caught_up)
            for handler in handlers
        ]
        control.handlers = [driver.control for driver in drivers]
        pipelines = [
            plan_pipeline(pipeline, cluster, root=root, emit=emit, until_caught_up=until_caught_up)
            for pipeline in app.pipelines
        ]
        with _joined(drivers), _session(app, session, master, conf) as spark:
            for driver in drivers:
                _start(driver, spark, brokers, per_record=per_record)
            queries = [query for pipeline in pipelines for query in pipeline.queries(spark, emit)]
            for query in queries:
                query.start()
            _watch([*drivers, *queries], stop)
    everything: list[HandlerDriver | PipelineQuery] = [*drivers, *queries]
    for each in everything:
        if each.error is not None:
            raise each.error


@contextmanager
def _joined(drivers: Sequence[HandlerDriver]) -> Iterator[None]:
    """Join the groups now, which takes a while, as does a session; at the end, leave them."""
    for driver in drivers:
        driver.join()
    try:
        yield
    finally:
        for driver in drivers:
            driver.stop("asked to")
        for driver in drivers:
            driver.wait(_LEAVE_SECONDS)


def _start(driver: HandlerDriver, session: SparkSession, brokers: str, *, per_record: bool) -> None:
    _refuse_speculation(driver.handler, session)
    connects = is_connect(session)
    here = not connects and is_local(str(session.sparkContext.master))
    packed = pack(driver.handler, brokers, is_local=here, per_record=per_record)
    slots = _CONNECT_SLOTS if connects else session.sparkContext.defaultParallelism
    driver.start(lambda ended: SliceJobs(session, packed, ended), slots=slots, per_record=per_record)


def _refuse_speculation(handler: Handler, session: SparkSession) -> None:
    """At-most-once: the second attempt finds the slice committed and ends at once, and Spark would kill the first."""
    if handler.is_at_most_once and session.conf.get("spark.speculation", "false") == "true":
        raise ConfigError(
            f'Handler {handler.name} uses delivery="at-most-once", and this Spark session has spark.speculation=true. '
            "Spark would kill attempts in the middle of their records, and they would not come again.",
            hint='Set spark.speculation=false, or use delivery="at-least-once".',
        )


def _plan_backfills(app: App, cluster: Cluster, span: Span) -> list[Backfill]:
    if app.handlers or not app.pipelines:
        names = ", ".join(handler.name for handler in app.handlers)
        raise ConfigError(
            f"A range works only with DataFrame pipelines, and app {app.name!r} has handlers ({names}).",
            hint="Put its pipelines into an app of their own. `penstock run --from ... --to ...` replays handlers.",
        )
    return [plan_backfill(pipeline, cluster, span) for pipeline in app.pipelines]


def _check_names(app: App) -> None:
    """Refuse two handlers of one group with the same name: events and errors name them."""
    declared: list[Handler | Pipeline] = [*app.handlers, *app.pipelines]
    names = Counter((each.group, each.name) for each in declared)
    for (group, name), count in names.items():
        if count > 1:
            raise ConfigError(
                f"{count} handlers of group {group!r} are called {name}.",
                hint="Give each function a name of its own.",
            )


def _check_options(app: App) -> None:
    """Refuse options that the Spark engine does not support."""
    for handler in app.handlers:
        refuse_unsupported(handler, "spark")
        if tasks_commit(handler) and handler.scale != "partition":
            raise ConfigError(
                f"Handler {handler.name} uses delivery={handler.delivery!r} with scale={handler.scale!r}. There a task "
                "commits its slice, and with this scale several tasks share a slice.",
                hint='Leave scale= out, or use delivery="at-least-once".',
            )


@contextmanager
def _session(
    app: App, given: SparkSession | None, master: str | None, conf: Mapping[str, str] | None
) -> Iterator[SparkSession]:
    needs_jars = bool(app.pipelines)
    with ExitStack() as stack:
        stack.enter_context(errors_raised_only())
        packages = app.packages if needs_jars else None
        session = given or stack.enter_context(spark_session(app.name, master=master, conf=conf, packages=packages))
        connects = is_connect(session)
        if connects and needs_jars:
            raise ConfigError(
                "Pipelines do not run through Spark Connect: there the code between batches runs in a process of the "
                "server, and the checkpoint is on the server's disk.",
                hint="Name the cluster behind it: --master spark://HOST:PORT, yarn or k8s://URL.",
            )
        chosen = master or "Spark Connect" if connects else str(session.sparkContext.master)
        try:
            check_version(session, pipelines=needs_jars)
            if connects or not is_local(chosen):
                shipment = shipment_of(app)
                stack.enter_context(shipped(session, shipment))
                if not connects:
                    check_executors(session.sparkContext, shipment)
            yield session
        except (PySparkException, JvmError, ConnectionError) as error:
            raise session_error(error, chosen) from error


def _watch(running: Sequence[HandlerDriver | PipelineQuery], stop: threading.Event) -> None:
    """Wait until all have ended. A failure or ``stop`` ends the others after their running slices or batch."""
    queries = [each for each in running if isinstance(each, PipelineQuery)]
    while not all(each.is_over for each in running):
        for query in queries:
            query.advance()
        if any(each.error is not None for each in running):
            _stop(running, "error")
        elif stop.is_set():
            _stop(running, "asked to")
        time.sleep(_WATCH_SECONDS)


def _stop(running: Sequence[HandlerDriver | PipelineQuery], reason: str) -> None:
    for each in running:
        each.stop(reason)
