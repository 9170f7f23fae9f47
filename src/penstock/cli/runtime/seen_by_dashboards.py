"""How dashboards see a run: on this machine, on others (``--report``), and beside the app (``--ui``)."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from penstock.app import App
from penstock.cli.console.decode_flags import decoding
from penstock.cli.runtime.event_listeners import Listener
from penstock.core.settings import Settings
from penstock.engine import HealthBoard
from penstock.kafka import Cluster
from penstock.ops.live_activity_file import LivePicture, live_activity_file
from penstock.ops.run_reporter import reporting
from penstock.ops.spark_activity_file import SparkPicture, spark_activity_file

UiFlag = Annotated[bool, typer.Option("--ui", help="Serve a read-only dashboard beside the app, and print its link.")]
ReportFlag = Annotated[
    bool,
    typer.Option(
        "--report",
        help="Report to the topics penstock.runs and penstock.rebalances: dashboards on other machines then see this "
        "app.",
    ),
]
_Say = Callable[[str], None]


@dataclass(frozen=True)
class SeenBy:
    """The flags, and what the dashboard needs of the run."""

    reference: str
    app: App
    brokers: str
    ui: bool
    report: bool

    def enter(self, stack: ExitStack, board: HealthBoard | None, say: _Say, warn: _Say) -> list[Listener]:
        """Begin until the stack closes; return the listeners for the run's events. On Spark there is no ``board``."""
        listeners: list[Listener] = []
        picture: LivePicture | SparkPicture
        if board is None:
            from penstock import spark  # noqa: PLC0415 - slow to import

            picture = SparkPicture(spark.session_facts)
            listeners.append(stack.enter_context(spark_activity_file(picture)))
        else:
            picture = LivePicture(board)
            listeners.append(picture.on_event)
            stack.enter_context(live_activity_file(picture))
        if self.report:
            cluster = Cluster(self.brokers, self.app.settings)
            reported = stack.enter_context(reporting(picture, cluster, warn))
            listeners += [] if reported is None else [reported]
        if self.ui:
            self._serve(stack, say)
        return listeners

    def _serve(self, stack: ExitStack, say: _Say) -> None:
        # Imported here because the web server is slow to import, and is an extra.
        from penstock.dashboard import DashboardOptions, serve_dashboard  # noqa: PLC0415

        served = serve_dashboard(
            DashboardOptions(),
            connect=partial(Cluster, self.brokers, Settings(self.app.settings)),
            note=say,
            decoding=partial(decoding, app=self.reference, registry=None, config=None),
        )
        say(f"Dashboard: {stack.enter_context(served).url}")
