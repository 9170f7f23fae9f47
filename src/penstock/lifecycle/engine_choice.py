"""Runs the app on the chosen engine."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock import engine as local
from penstock.app import App
from penstock.app.pipelines import Span
from penstock.app.run_options import RunSettings
from penstock.core.reports.events import Event
from penstock.engine import HealthBoard


@dataclass(frozen=True, kw_only=True)
class RunExtras:
    """What only ``penstock run`` offers: a health port, events of single records, a range of pipelines."""

    health: HealthBoard | None = None
    per_record: bool = False
    span: Span | None = None


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
