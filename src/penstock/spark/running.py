"""Run an app on Spark, from start to a clean stop."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.app import App, Handler
from penstock.core.events import Error, Event
from penstock.errors import ConfigError
from penstock.kafka import Cluster, prepare_topics
from penstock.spark.checkpoint import checked_root, checkpoint_of
from penstock.spark.failures import session_error
from penstock.spark.group import GroupOffsets, refuse_members
from penstock.spark.offsets import Log, resume
from penstock.spark.places import checkpoint_root
from penstock.spark.query import HandlerQuery, Plan
from penstock.spark.session import DEFAULT_MASTER, spark_session
from penstock.spark.source import client_options
from penstock.spark.task import for_workers

_WATCH_SECONDS = 0.05


def run(
    app: App,
    *,
    brokers: str,
    emit: Callable[[Event], None],
    stop: threading.Event,
    until_caught_up: bool = False,
    master: str | None = None,
    checkpoint: Path | str | None = None,
    session: SparkSession | None = None,
) -> None:
    """Consume for every handler of the app until ``stop`` is set, all have caught up, or one fails.

    ``checkpoint`` is a folder of this machine for what Spark must remember; ``session`` is used as it is, and left
    running, where one is given.
    """
    _check_names(app)
    _check_options(app)
    cluster = Cluster(brokers, app.settings)
    prepare_topics(app, cluster, emit)
    root = checked_root(checkpoint) if checkpoint is not None else checkpoint_root() / cluster.id()
    plans = [_plan(handler, cluster, root=root, emit=emit, until_caught_up=until_caught_up) for handler in app.handlers]
    with _session(app, session, master) as spark:
        queries = [HandlerQuery(spark, plan, emit) for plan in plans]
        for query in queries:
            query.start()
        _watch(queries, stop)
    for query in queries:
        if query.error is not None:
            raise query.error


def _check_names(app: App) -> None:
    """A handler's checkpoint goes by its name."""
    names = Counter((handler.group, handler.name) for handler in app.handlers)
    for (group, name), count in names.items():
        if count > 1:
            raise ConfigError(
                f"{count} handlers of group {group!r} are called {name}.",
                hint="Give each function a name of its own: it names their checkpoints.",
            )


def _check_options(app: App) -> None:
    """Options that would go unheard here are refused."""
    for handler in app.handlers:
        others = {
            "on_assigned": handler.on_assigned is not None,
            "on_revoked": handler.on_revoked is not None,
            "on_lost": handler.on_lost is not None,
            "retry_topics": bool(handler.retry_topics),
            'commit="manual"': handler.commit == "manual",
        }
        hint = "Run it with --engine local, or leave that option out."
        handler.refuse(others, where="the Spark engine", hint=hint)


def _plan(
    handler: Handler, cluster: Cluster, *, root: Path, emit: Callable[[Event], None], until_caught_up: bool
) -> Plan:
    """Everything that can be found wrong before Spark takes its seconds to start is found here."""
    stage, clients = for_workers(handler), client_options(cluster.brokers, handler.settings)
    refuse_members(cluster, handler.group)
    checkpoint = checkpoint_of(handler, root)
    places = cluster.places(handler.topics)
    starts, ends = cluster.start_offsets(places), cluster.end_offsets(places)
    logs = {place: Log(starts[place], ends[place]) for place in places}
    finished, committed = checkpoint.finished(), cluster.committed(handler.group, places)
    resumption = resume(logs, finished=finished, committed=committed, start=handler.start)
    for surprise in resumption.surprises:
        emit(Error(group=handler.group, reason=surprise, fatal=False))
    if not (resumption.checkpoint_fits and checkpoint.is_readable()):
        checkpoint.set_aside()
    group = GroupOffsets(cluster, handler.group, committed, emit)
    group.advance(resumption.offsets)
    left = resumption.left(logs)
    return Plan(
        handler=handler,
        stage=stage,
        clients=clients,
        checkpoint=checkpoint,
        start=resumption.offsets,
        lag=sum(map(len, left.values())),
        targets={place: offsets.stop for place, offsets in left.items()} if until_caught_up else None,
        group=group,
    )


@contextmanager
def _session(app: App, given: SparkSession | None, master: str | None) -> Iterator[SparkSession]:
    if given is not None:
        yield given
        return
    with spark_session(app.name, master=master) as session:
        try:
            yield session
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise session_error(error, master or DEFAULT_MASTER) from error


def _watch(queries: Sequence[HandlerQuery], stop: threading.Event) -> None:
    """Until all have ended; one that fails, or a wish to stop, ends the others at their next border."""
    while not all(query.is_over for query in queries):
        for query in queries:
            query.advance()
        if any(query.error is not None for query in queries):
            _stop(queries, "error")
        elif stop.is_set():
            _stop(queries, "asked to")
        time.sleep(_WATCH_SECONDS)


def _stop(queries: Sequence[HandlerQuery], reason: str) -> None:
    for query in queries:
        query.stop(reason)
