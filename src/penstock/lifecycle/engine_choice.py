"""Runs the app on the chosen engine."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.app import App
from penstock.app.hooks import Hooks
from penstock.app.pipelines import Span
from penstock.app.runs.run_options import Engine, RunSettings
from penstock.app.signature import function_name
from penstock.core.reports import events
from penstock.core.reports.events import Event
from penstock.errors import ConfigError
from penstock.lifecycle.range_replay import RangeReplay

if TYPE_CHECKING:
    from penstock.engine import HealthBoard


@dataclass(frozen=True, kw_only=True)
class RunExtras:
    """What only ``penstock run`` offers: a health port, events of single records, a range of pipelines.

    ``replay`` was begun already, for the listeners that the command sets up: the app has only its handlers.
    """

    health: "HealthBoard | None" = None
    per_record: bool = False
    span: Span | None = None
    replay: RangeReplay | None = None


# Spark's driver owns partitions and never fetches, so it has nothing to say of rebalances and of fetching. Tasks do not
# watch for stuck records and hot keys.
_NOT_ON_SPARK = (events.Joining, events.Rebalanced, events.Paused, events.Resumed, events.Stalled, events.HotKey)
# A pipeline has no handler that Penstock calls for each record, and no membership.
_NOT_OF_PIPELINES = (
    *_NOT_ON_SPARK,
    *(events.Assigned, events.Revoked, events.Lost, events.StartOverridden),
    *(events.Dispatched, events.Finished, events.Skipped),
    *(events.Retried, events.AwaitingDependency, events.Postponed, events.DeadLettered),
)


def refuse_listeners(app: App, hooks: Hooks, engine: Engine) -> None:
    """Refuse a listener to an event that this app never reports on this engine: it would silently never be called."""
    if engine == "local":
        return
    reporter, never = ("the Spark engine", _NOT_ON_SPARK) if app.handlers else ("a pipeline", _NOT_OF_PIPELINES)
    for listener in hooks.listeners:
        for kind in listener.kinds:
            if kind in never:
                raise ConfigError(
                    f"{function_name(listener.function)} listens to {kind.__name__}, which {reporter} does not report.",
                    hint="Leave it out, or listen to BatchFinished or Progressed."
                    if not app.handlers
                    else "Leave it out, or run the app on the local engine.",
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
    # Imported here because both take long, and Spark needs an extra. Commands that run no app need none of them.
    if settings.engine == "local":
        from penstock import engine  # noqa: PLC0415

        engine.run(
            app,
            brokers=brokers,
            emit=emit,
            stop=stop,
            until_caught_up=settings.until_caught_up,
            per_record=extras.per_record,
            health=extras.health,
        )
        return
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
