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
from penstock.spark.asking import UNANSWERED
from penstock.spark.checkpoint import checked_root, default_root
from penstock.spark.internals import JvmError, check_version, errors_raised_only
from penstock.spark.pipelines.backfill import Backfill, plan_backfill
from penstock.spark.pipelines.output_query import PipelineQuery
from penstock.spark.pipelines.pipeline_plan import plan_pipeline
from penstock.spark.planning import Planner
from penstock.spark.query import HandlerQuery
from penstock.spark.session.executors import check_executors
from penstock.spark.session.masters import is_local
from penstock.spark.session.shipping import shipment_of, shipped
from penstock.spark.session.spark_session import spark_session
from penstock.spark.spark_errors import session_error

_WATCH_SECONDS = 0.05


def run(
    app: App,
    *,
    brokers: str,
    emit: Callable[[Event], None],
    stop: threading.Event,
    until_caught_up: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    checkpoint: Path | str | None = None,
    session: SparkSession | None = None,
    span: Span | None = None,
) -> None:
    """Run all handlers and pipelines of the app until ``stop`` is set, all have caught up, or one fails.

    ``checkpoint`` is a local folder for Spark's checkpoints. Uses ``session``, or else a session that runs in this
    process, and leaves it running; otherwise starts one on ``master`` with Spark's settings ``conf``. Sends the app's
    code to executors on other machines. With a ``span``, only runs the app's pipelines once over that range.
    """
    _check_names(app)
    _check_options(app)
    prepare_formats(app)
    cluster = Cluster(brokers, app.settings)
    with app.controlled_by(UNANSWERED):
        prepare_topics(app, cluster, emit)
        if span is not None:
            backfills = _plan_backfills(app, cluster, span)
            with _session(app, session, master, conf) as spark:
                for backfill in backfills:
                    backfill.run(spark, emit, stop)
            return
        root = checked_root(checkpoint) if checkpoint is not None else default_root(cluster.id())
        planners = [
            Planner(handler, cluster, root=root, emit=emit, until_caught_up=until_caught_up) for handler in app.handlers
        ]
        plans = [planner.plan() for planner in planners]
        pipelines = [
            plan_pipeline(pipeline, cluster, root=root, emit=emit, until_caught_up=until_caught_up)
            for pipeline in app.pipelines
        ]
        with _session(app, session, master, conf) as spark:
            queries: list[HandlerQuery | PipelineQuery] = [
                HandlerQuery(spark, plan, emit, replan=planner.plan)
                for planner, plan in zip(planners, plans, strict=True)
            ]
            queries += [query for pipeline in pipelines for query in pipeline.queries(spark, emit)]
            for query in queries:
                query.start()
            _watch(queries, stop)
    for query in queries:
        if query.error is not None:
            raise query.error


def _plan_backfills(app: App, cluster: Cluster, span: Span) -> list[Backfill]:
    if app.handlers or not app.pipelines:
        names = ", ".join(handler.name for handler in app.handlers)
        raise ConfigError(
            f"A range works only with DataFrame pipelines, and app {app.name!r} has handlers ({names}).",
            hint="Put its pipelines into an app of their own; to handle records again, set the group's offsets back.",
        )
    return [plan_backfill(pipeline, cluster, span) for pipeline in app.pipelines]


def _check_names(app: App) -> None:
    """Refuse two handlers of one group with the same name: the name is the folder of the checkpoint."""
    declared: list[Handler | Pipeline] = [*app.handlers, *app.pipelines]
    names = Counter((each.group, each.name) for each in declared)
    for (group, name), count in names.items():
        if count > 1:
            raise ConfigError(
                f"{count} handlers of group {group!r} are called {name}.",
                hint="Give each function a name of its own: it names their checkpoints.",
            )


def _check_options(app: App) -> None:
    """Refuse options that the Spark engine does not support."""
    for handler in app.handlers:
        refuse_unsupported(handler, "spark")
        if handler.is_exactly_once and handler.scale != "partition":
            raise ConfigError(
                f'Handler {handler.name} uses delivery="exactly-once" with scale={handler.scale!r}. A transaction '
                "covers one partition, and such a task has records of several partitions.",
                hint='Leave scale= out, or use delivery="at-least-once".',
            )


@contextmanager
def _session(
    app: App, given: SparkSession | None, master: str | None, conf: Mapping[str, str] | None
) -> Iterator[SparkSession]:
    with ExitStack() as stack:
        stack.enter_context(errors_raised_only())
        session = given or stack.enter_context(spark_session(app.name, master=master, conf=conf, packages=app.packages))
        context, chosen = session.sparkContext, str(session.sparkContext.master)
        try:
            check_version(session)
            if not is_local(chosen):
                shipment = shipment_of(app)
                stack.enter_context(shipped(context, shipment))
                check_executors(context, shipment)
            yield session
        except (PySparkException, JvmError, ConnectionError) as error:
            raise session_error(error, chosen) from error


def _watch(queries: Sequence[HandlerQuery | PipelineQuery], stop: threading.Event) -> None:
    """Advance all queries until they have ended. A failure or ``stop`` ends the others after their running batch."""
    while not all(query.is_over for query in queries):
        for query in queries:
            query.advance()
        if any(query.error is not None for query in queries):
            _stop(queries, "error")
        elif stop.is_set():
            _stop(queries, "asked to")
        time.sleep(_WATCH_SECONDS)


def _stop(queries: Sequence[HandlerQuery | PipelineQuery], reason: str) -> None:
    for query in queries:
        query.stop(reason)
