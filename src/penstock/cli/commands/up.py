"""``penstock up | down | status``: a real Kafka on this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console.progress_bars import Steps
from penstock.cli.console.screen import err, out, print_json, print_line
from penstock.cli.console.shared_options import Json
from penstock.core.text.plurals import counted
from penstock.devkit import ClusterStatus, Embedded, ServerState, ServerStatus, UpOptions
from penstock.jvm.coordinates import KAFKA

_NOT_RUNNING = 3
_PANEL = "Kafka on this machine"
_COLOURS = {ServerState.RUNNING: "green", ServerState.DEAD: "red", ServerState.SILENT: "yellow"}

_UP_EXAMPLES = """
[bold]Examples[/]

  penstock up                               one broker on port 9092, or on a free one
  penstock up --brokers 3 --registry        a cluster of three and a schema registry
  penstock up --data /mnt/fast --memory 1g
"""
_DOWN_EXAMPLES = """
[bold]Examples[/]

  penstock down                             stop it, keep the data
  penstock down --wipe                      stop it, delete the data
"""
_STATUS_EXAMPLES = """
[bold]Examples[/]

  penstock status
  penstock status --json | jq -r .bootstrap
"""


def register(app: typer.Typer) -> None:
    app.command("up", epilog=_UP_EXAMPLES, rich_help_panel=_PANEL)(up)
    app.command("down", epilog=_DOWN_EXAMPLES, rich_help_panel=_PANEL)(down)
    app.command("status", epilog=_STATUS_EXAMPLES, rich_help_panel=_PANEL)(status)


def up(
    *,
    brokers: Annotated[
        int | None,
        typer.Option(help="How many brokers: 1, 3 or 5.", show_default="1, or the number that the data was made for"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="Port of the first broker; 0 chooses a free one.", show_default="9092, or a free one if that is taken"
        ),
    ] = None,
    registry: Annotated[bool, typer.Option("--registry", help="Also run a schema registry.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the records.", show_default="a folder of your user")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Java heap of each broker.", show_default="512m")] = None,
    as_json: Json = False,
) -> None:
    """Start a real Kafka in the background, and wait until it is ready.

    The first start downloads Kafka. Records are kept between starts.
    If some servers have died, this starts them again.
    """
    options = UpOptions(brokers=brokers, port=port, registry=registry, data=data, memory=memory)
    with Steps(err, quiet=as_json) as steps:
        result = Embedded().up(options, progress=steps.step)
    if as_json:
        print_json(result.as_json())
    else:
        _print_welcome(result)


def down(
    *,
    wipe: Annotated[bool, typer.Option("--wipe", help="Also delete the data.")] = False,
    as_json: Json = False,
) -> None:
    """Stop the Kafka that `penstock up` started, and keep its data."""
    with Steps(err, quiet=as_json) as steps:
        stopped = Embedded().down(wipe_data=wipe, progress=steps.step)
    if as_json:
        print_json({"stopped": list(stopped.roles), "wiped": stopped.wiped})
        return
    print_line(f"Stopped {', '.join(stopped.roles)}." if stopped.roles else "Nothing was running.")
    if wipe:
        print_line(f"Deleted the data in {stopped.wiped}." if stopped.wiped else "There was no data to delete.")


def status(*, as_json: Json = False) -> None:
    """Show the servers of the embedded Kafka. The exit code is 0 if all of them are running, else 3."""
    found = Embedded().status()
    if as_json:
        print_json(found.as_json())
    else:
        _print_status(found)
    if not found.running:
        raise typer.Exit(_NOT_RUNNING)


def _print_welcome(result: ClusterStatus) -> None:
    count = counted(len(result.brokers), "broker")
    out.print(Text.assemble((f"{KAFKA.title} is running", "bold green"), f" ({count})."))
    _print_facts(
        [
            *(("note", note) for note in result.notes),
            ("brokers", result.bootstrap),
            ("registry", result.registry.url if result.registry else None),
            ("data", result.data),
        ]
    )
    out.print()
    out.print("Your apps and all penstock commands find it. To see its state, and to stop it:")
    for command in ("penstock status", "penstock down"):
        out.print(f"  {command}")


def _print_status(found: ClusterStatus) -> None:
    if not found.brokers:
        out.print(Text.from_markup("No embedded Kafka is running. Start one with [bold]penstock up[/]."))
        _print_facts([("note", note) for note in found.notes])
        return
    out.print(_servers(found))
    out.print()
    _print_facts(
        [
            ("cluster", found.cluster_id),
            ("registry", found.registry.url if found.registry else None),
            ("data", found.data),
            ("logs", found.logs),
            *(("note", note) for note in found.notes),
        ]
    )
    if not found.running:
        out.print()
        advice = "Some servers are not running. [bold]penstock up[/] starts them again, on the same data."
        out.print(Text.from_markup(advice))


def _servers(found: ClusterStatus) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("server", no_wrap=True)
    table.add_column("port", justify="right")
    table.add_column("state", no_wrap=True)
    for column in ("pid", "uptime", "memory"):
        table.add_column(column, justify="right", no_wrap=True)
    for broker in found.brokers:
        role = " (controller)" if broker.id == found.controller else ""
        table.add_row(f"broker {broker.id}{role}", str(broker.port), *_cells(broker))
    if found.registry:
        table.add_row("registry", str(found.registry.port), *_cells(found.registry))
    return table


def _cells(server: ServerStatus) -> tuple[Text, str, str, str]:
    state = Text(server.state.value, style=_COLOURS[server.state])
    if server.pid is None:
        return state, "-", "-", "-"
    return state, str(server.pid), _duration(server.uptime_seconds or 0), f"{(server.memory_bytes or 0) >> 20} MB"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {rest:02}s"


def _print_facts(facts: list[tuple[str, str | None]]) -> None:
    for name, value in facts:
        if value is not None:
            out.print(f"  {name:<9} {value}", markup=False, soft_wrap=True)
