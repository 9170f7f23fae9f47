"""Runs the app on the chosen engine."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock import engine as local
from penstock.app import App
from penstock.app.hooks import Hooks
from penstock.app.pipelines import Span
from penstock.app.run_options import Engine, RunSettings
from penstock.app.signature import function_name
from penstock.core.reports import events
from penstock.core.reports.events import Event
from penstock.engine import HealthBoard
from penstock.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RunExtras:
    """What only ``penstock run`` offers: a health port, events of single records, a range of pipelines."""

    health: HealthBoard | None = None
    per_record: bool = False
    span: Span | None = None


# Tasks on executors report counts, not single records and attempts, and Spark is no member of a group.
_NOT_ON_SPARK = (
    *(events.Dispatched, events.Finished, events.Skipped, events.Stalled, events.HotKey),
    *(events.Retried, events.Blocked, events.Postponed, events.DeadLettered),
    *(events.Joining, events.Assigned, events.Revoked, events.Lost, events.Rebalanced, events.Paused, events.Resumed),
)


def refuse_listeners(hooks: Hooks, engine: Engine) -> None:
    """Refuse a listener to an event that the engine never reports: it would silently never be called."""
    if engine == "local":
        return
    for listener in hooks.listeners:
        for kind in listener.kinds:
            if kind in _NOT_ON_SPARK:
                raise ConfigError(
                    f"{function_name(listener.function)} listens to {kind.__name__}, which the Spark engine does not "
                    "report: its tasks run on executors and report only counts.",
                    hint="Listen to BatchFinished or Progressed, or run the app on the local engine.",
                )


def run_on_engine(
    app: App,
    settings: RunSettings,
    *,
    brokers: str,
    emit: Callable[[Event], None],
    stop: threading.Event,
    extras: RunExtras,
) -> None:
    """Run the app until ``stop`` is set, it has caught up, or it fails. Several threads call ``emit``."""
    if settings.engine == "local":
        local.run(
            app,
            brokers=brokers,
            emit=emit,
            stop=stop,
            until_caught_up=settings.until_caught_up,
            per_record=extras.per_record,
            health=extras.health,
        )
        return
    # Imported here because the import is slow and needs an extra.
    from penstock import spark  # noqa: PLC0415

    spark.run(
        app,
        brokers=brokers,
        emit=emit,
        stop=stop,
        until_caught_up=settings.until_caught_up,
        master=settings.master,
        conf=settings.spark_conf,
        checkpoint=settings.checkpoint,
        span=extras.span,
        per_record=extras.per_record,
    )
