"""``penstock run``."""

import json
import threading
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock import engine as local
from penstock.app import load_app
from penstock.cli.configuring import configure, print_config
from penstock.cli.health import serve_health
from penstock.cli.listeners import EventsFile, Fanout, Listener, Narrator, Totals
from penstock.cli.options import Brokers, Json, choose_brokers
from penstock.cli.progress import Meter, Steps
from penstock.cli.screen import err, out
from penstock.cli.signals import stop_on_signals
from penstock.core.duration import seconds
from penstock.engine import HealthBoard
from penstock.errors import ConfigError
from penstock.jvm.coordinates import kafka_connector
from penstock.jvm.jars import resolve

_EXAMPLES = """
[bold]Examples[/]

  penstock run shop:app                           until Ctrl+C
  penstock run shop:app --until-caught-up         all that is there now, then exit
  penstock run shop:app --engine spark            the same handlers on Spark, local[*]
  penstock run shop:app -b kafka1:9092,kafka2:9092 --events events.jsonl
  penstock run shop:app --set ship.concurrency=200 --set settings.session.timeout.ms=45000
  penstock run shop:app --print-config            every option, and where it came from
"""


class Engine(StrEnum):
    local = "local"
    spark = "spark"


def register(app: typer.Typer) -> None:
    app.command("run", epilog=_EXAMPLES)(run)


def run(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="MODULE:APP", help="Where the app is, as in shop:app.")],
    *,
    engine: Annotated[Engine, typer.Option(help="Where handlers run.")] = Engine.local,
    brokers: Brokers = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Handle all that is in the topics now, then exit.")
    ] = False,
    events: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append every event to this file, as JSON lines.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master; local[*] by default. With --engine spark.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where Spark keeps its progress. With --engine spark.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="PENSTOCK_CONFIG",
            help="Options of the app and its handlers; penstock.toml in this folder by default.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option, for all handlers or for one (ship.concurrency=200), or a setting "
            "(settings.session.timeout.ms=45000). May be repeated.",
        ),
    ] = None,
    show_config: Annotated[
        bool, typer.Option("--print-config", help="Print every option and where it came from, then exit.")
    ] = False,
    health: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Answer liveness probes here, on loopback by default. Local engine."),
    ] = None,
    stuck_after: Annotated[
        str, typer.Option(metavar="DURATION", help="With --health: a record in progress for longer is a failure.")
    ] = "10m",
    as_json: Json = False,
) -> None:
    """Consume with an app's handlers until it is stopped: Ctrl+C or SIGTERM drains, commits and leaves."""
    _check_flags(engine, master=master, checkpoint=checkpoint, health=health)
    from_line = brokers if _is_on_the_line(context, "brokers") else None
    effective = configure(load_app(reference), file=config, brokers=from_line, flags=settings or [])
    if show_config:
        print_config(effective, out, as_json=as_json)
        return
    app = effective.app
    chosen = choose_brokers(None, app.brokers)
    if engine is Engine.spark:
        with Steps(err, quiet=as_json) as steps:
            resolve(kafka_connector(), progress=steps.step)
    totals = Totals()
    with ExitStack() as stack:
        listeners: list[Listener] = [totals]
        if not as_json:
            listeners += [Narrator(err), stack.enter_context(Meter(err))]
        if events is not None:
            file = EventsFile(events)
            stack.callback(file.close)
            listeners.append(file)
        stop = threading.Event()
        stack.enter_context(stop_on_signals(stop, lambda line: err.print(line, style="bold")))
        emit = Fanout(listeners)
        board = HealthBoard()
        if health is not None:
            stack.enter_context(serve_health(health, board, stuck_after=seconds(stuck_after, name="--stuck-after")))
        if engine is Engine.spark:
            # Imported here because it takes long, and only its users should wait for it.
            from penstock import spark  # noqa: PLC0415

            spark.run(
                app,
                brokers=chosen,
                emit=emit,
                stop=stop,
                until_caught_up=until_caught_up,
                master=master,
                checkpoint=checkpoint,
            )
        else:
            local.run(
                app,
                brokers=chosen,
                emit=emit,
                stop=stop,
                until_caught_up=until_caught_up,
                per_record=events is not None,
                health=board,
            )
    if as_json:
        typer.echo(json.dumps({"stopped": [asdict(each) for each in totals.stopped]}))


def _check_flags(engine: Engine, *, master: str | None, checkpoint: str | None, health: str | None) -> None:
    if engine is Engine.local and (master or checkpoint):
        raise ConfigError("--master and --checkpoint are for Spark.", hint="Add --engine spark, or leave them out.")
    if engine is Engine.spark and health is not None:
        raise ConfigError("--health is for the local engine.", hint="Spark answers on its own UI, port 4040.")


def _is_on_the_line(context: typer.Context, parameter: str) -> bool:
    """Whether it was given as a flag; the same option from the environment comes with all the others from there."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
