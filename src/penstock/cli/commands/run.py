"""``penstock run``."""

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.app import App, load_app
from penstock.app.pipelines import Span, read_log_position
from penstock.app.runs.run_options import RunSettings
from penstock.cli.console.progress_bars import Meter, Steps
from penstock.cli.console.screen import err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.runtime.app_config import configure, print_config
from penstock.cli.runtime.event_listeners import EventsFile, Fanout, Listener, TerminalListener, Totals
from penstock.cli.runtime.health_server import serve_health
from penstock.cli.runtime.json_logs import JsonLog, LogKind, logging_as_json
from penstock.cli.runtime.metrics_server import serve_metrics
from penstock.cli.runtime.reload import run_again_and_again
from penstock.cli.runtime.replay_run import (
    HandlerNames,
    ReplayDryRun,
    ReplayTo,
    check_replay_flags,
    chosen_replay,
    replay_as_json,
    run_to_end,
)
from penstock.cli.runtime.seen_by_dashboards import ReportFlag, SeenBy, UiFlag
from penstock.core.text.durations import seconds
from penstock.engine import HealthBoard
from penstock.errors import ConfigError
from penstock.kafka import Cluster
from penstock.lifecycle import AppRun, RunExtras, begin_replay, choose_brokers, stop_on_signals
from penstock.ops.metrics import EventCounters
from penstock.ops.run_socket import run_socket_of
from penstock.ops.runs import registered

_EXAMPLES = """
[bold]Examples[/]

  penstock run shop:app                           until Ctrl+C
  penstock run shop:app --until-caught-up         handle the records that are in the topics now, then exit
  penstock run shop:app --for 10m                 stop cleanly after ten minutes
  penstock run shop:app --reload                  restart whenever the code changes, while you develop
  penstock run shop:app --engine spark            the same handlers on Spark, local[*]
  penstock run shop:app --engine spark --master spark://host:7077 --spark-conf spark.executor.memory=4g
  penstock run shop:app --from 2026-01-01 --to 2026-02-01 --dry-run
  penstock run shop:app --from orders:0=100 --to orders:0=200 --handler invoice --to-topic invoices.new
  penstock run lake:app --engine spark --from 2026-01-01 --to 2026-02-01
  penstock run shop:app -b kafka1:9092,kafka2:9092 --events events.jsonl
  penstock run shop:app --set ship.concurrency=200 --set settings.session.timeout.ms=45000
  penstock run shop:app --ui                      the dashboard beside the app: it prints the link
  penstock run shop:app --metrics 9400            for Prometheus, on localhost:9400/metrics
  penstock run shop:app --log json                one JSON object a line, for a log collector
  penstock run shop:app --print-config            every option, its value and where it was set
"""

HealthPort = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Answer the probes /live and /ready on this port. Default host: 127.0.0.1. Local engine only.",
    ),
]
StuckAfter = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="With --health: report failing when a handler works on one record for longer."
    ),
]
MetricsPort = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Serve Prometheus metrics on this port; 0 chooses a free one. Default host: 127.0.0.1.",
    ),
]


class Engine(StrEnum):
    local = "local"
    spark = "spark"


def register(app: typer.Typer) -> None:
    app.command("run", epilog=_EXAMPLES)(run)


def run(
    context: typer.Context,
    reference: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="The app: its module and its variable, such as shop:app.")
    ],
    *,
    engine: Annotated[Engine, typer.Option(help="The engine that runs the handlers.")] = Engine.local,
    brokers: Brokers = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Handle the records that are in the topics now, then exit.")
    ] = False,
    lasting: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Stop cleanly after this time, such as 30s or 10m.")
    ] = None,
    events: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append every event to this file, as JSON lines.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master. Default: local[*]. Needs --engine spark.")
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark setting. Needs --engine spark. Repeatable."),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of Spark's checkpoints. Needs --engine spark.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="PENSTOCK_CONFIG",
            help="File with options of the app and its handlers. Default: penstock.toml in this folder.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of all handlers or of one (ship.concurrency=200), or a setting of the Kafka client "
            "(settings.session.timeout.ms=45000). Repeatable.",
        ),
    ] = None,
    show_config: Annotated[
        bool, typer.Option("--print-config", help="Print every option, its value and where it was set, then exit.")
    ] = False,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="START",
            help="Run handlers or pipelines once over a range, beside the live group, then exit. Where the range "
            "starts: a time, earliest, or offsets (orders:0=100).",
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="END", help="Where the range of --from ends (exclusive).")
    ] = None,
    handlers: HandlerNames = None,
    to_topic: ReplayTo = None,
    dry_run: ReplayDryRun = False,
    health: HealthPort = None,
    stuck_after: StuckAfter = "10m",
    metrics: MetricsPort = None,
    report: ReportFlag = False,
    ui: UiFlag = False,
    log: Annotated[
        LogKind, typer.Option(help="Format of standard error: text, or one JSON object a line.")
    ] = LogKind.text,
    reload: Annotated[
        bool, typer.Option("--reload", help="For development: stop cleanly and start again whenever the code changes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run an app's handlers until Ctrl+C or SIGTERM, which finishes the records in progress, commits and leaves."""
    _check_flags(engine, spark_only=bool(master or checkpoint or spark_conf), health=health)
    span = _span(from_, to, until_caught_up=until_caught_up)
    check_replay_flags(span, handlers or [], to_topic, dry_run=dry_run)
    stop_after = _stop_after(lasting, ends_by_itself=until_caught_up or span is not None)
    if reload:
        _check_reload(ends=until_caught_up or span is not None or stop_after is not None)
        raise typer.Exit(run_again_and_again(config, JsonLog(sys.stderr).say if log is LogKind.json else _say))
    from_line = brokers if _is_on_the_line(context, "brokers") else None
    effective = configure(load_app(reference), file=config, brokers=from_line, flags=settings or [])
    if show_config:
        print_config(effective, out, as_json=as_json)
        return
    app = effective.app
    if span is not None and engine is Engine.local and not app.handlers:
        app.refuse_pipelines(where="the local engine", hint="Add --engine spark.")
    chosen = choose_brokers(None, app.brokers)
    asked = chosen_replay(app, span, handlers or [], to_topic, dry_run=dry_run)
    replay = None if asked is None else begin_replay(app, chosen, asked)
    conf = None if engine is Engine.local else _spark_conf(app, spark_conf, quiet=as_json or log is LogKind.json)
    totals = Totals()
    with ExitStack() as stack:
        printers, say, warn = _printers(stack, log, quiet=as_json, dry_run=dry_run)
        listeners: list[Listener] = [totals, *printers]
        if events is not None:
            file = EventsFile(events)
            stack.callback(file.close)
            listeners.append(file)
        stop = threading.Event()
        stack.enter_context(stop_on_signals(stop, say, or_after=stop_after))
        # From here on `penstock stop` finds this run, and its signal leads to a clean stop.
        groups = [handler.group for handler in app.handlers]
        board = HealthBoard()
        socket = stack.enter_context(run_socket_of(app, board.member_metrics, warn=warn))
        listeners.append(
            stack.enter_context(registered(app.name, engine=engine.value, groups=groups, warn=warn, socket=socket))
        )
        seen_by = SeenBy(reference, app, chosen, ui=ui, report=report)
        listeners += seen_by.enter(stack, None if engine is Engine.spark else board, say, warn)
        if metrics is not None:
            event_counters = _event_counters(app)
            listeners.append(event_counters)
            port = stack.enter_context(
                serve_metrics(metrics, event_counters, board, make_cluster=lambda: Cluster(chosen, app.settings))
            )
            say(f"Prometheus metrics are served on port {port}.")
        emit = Fanout(listeners)
        if health is not None:
            stack.enter_context(serve_health(health, board, stuck_after=seconds(stuck_after, name="--stuck-after")))
        run_settings = RunSettings(
            brokers=chosen,
            engine=engine.value,
            until_caught_up=until_caught_up or replay is not None,
            master=master,
            spark_conf=conf,
            checkpoint=checkpoint,
        )
        extras = RunExtras(
            health=board, per_record=events is not None, span=span if replay is None else None, replay=replay
        )
        app_run = AppRun(app, run_settings, emit=emit, stop=stop, extras=extras)
        replayed = run_to_end(app_run, replay, say)
    if as_json:
        result = {"stopped": [asdict(each) for each in totals.stopped]}
        print_json(result if replayed is None else {**result, "replay": replay_as_json(replayed)}, indent=None)


def _spark_conf(app: App, given: list[str] | None, *, quiet: bool) -> dict[str, str]:
    # Imported here because the import is slow, and only users of Spark should wait for it.
    from penstock import spark  # noqa: PLC0415

    conf = spark.parse_conf(given or [])
    with Steps(err, quiet=quiet) as steps:
        spark.fetch_jars(app.packages if app.pipelines else None, progress=steps.step)
    return conf


def _event_counters(app: App) -> EventCounters:
    event_counters = EventCounters()
    for handler in app.handlers:
        for name in {handler.name, *(route.name for route in handler.routes)}:
            event_counters.expect(handler.group, name, handler.consumed_topics)
    return event_counters


_Say = Callable[[str], None]


def _printers(stack: ExitStack, log: LogKind, *, quiet: bool, dry_run: bool) -> tuple[list[Listener], _Say, _Say]:
    """Return the listeners that write to standard error, a function to print a line there, and one to warn."""
    if log is LogKind.json:
        lines = JsonLog(sys.stderr)
        stack.enter_context(logging_as_json(lines))
        return [lines], lines.say, lines.caution
    return [] if quiet else [TerminalListener(err, dry_run=dry_run), stack.enter_context(Meter(err))], _say, _warn


def _say(line: str) -> None:
    err.print(line, style="bold", markup=False, soft_wrap=True)


def _warn(line: str) -> None:
    err.print(line, style="yellow", markup=False, soft_wrap=True)


def _check_flags(engine: Engine, *, spark_only: bool, health: str | None) -> None:
    if engine is Engine.local and spark_only:
        raise ConfigError(
            "--master, --spark-conf and --checkpoint need --engine spark.",
            hint="Add --engine spark, or leave them out.",
        )
    if engine is Engine.spark and health is not None:
        raise ConfigError(
            "--health works only with the local engine.", hint="Leave it out, and probe Spark's own UI, on port 4040."
        )


def _span(start: str | None, end: str | None, *, until_caught_up: bool) -> Span | None:
    if start is None and end is None:
        return None
    if until_caught_up:
        raise ConfigError(
            "--from and --to run the app once over a range, then exit.", hint="Leave out --until-caught-up."
        )
    return Span(read_log_position(start or "earliest", name="--from"), read_log_position(end or "latest", name="--to"))


def _stop_after(lasting: str | None, *, ends_by_itself: bool) -> float | None:
    if lasting is None:
        return None
    if ends_by_itself:
        raise ConfigError(
            "--for cannot be combined with --until-caught-up, --from or --to.", hint="Leave out --for, or the others."
        )
    return seconds(lasting, name="--for")


def _check_reload(*, ends: bool) -> None:
    if ends:
        raise ConfigError(
            "--reload cannot be combined with --until-caught-up, --for, --from or --to.",
            hint="Leave out --reload, or the others.",
        )


def _is_on_the_line(context: typer.Context, parameter: str) -> bool:
    """Return whether the parameter was given as a flag. ``configure`` reads the environment."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
