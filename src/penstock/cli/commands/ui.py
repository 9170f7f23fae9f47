"""``penstock ui``."""

import threading
from contextlib import nullcontext
from functools import partial
from typing import Annotated

import typer

from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.decode_flags import OfApp, RegistryUrl, decoding
from penstock.cli.console.screen import err, print_json_data, print_line
from penstock.cli.console.shared_options import Brokers, Json
from penstock.dashboard import DashboardOptions, opened_in_browser, serve_dashboard
from penstock.lifecycle import stop_on_signals

PANEL = "Operating"

_EXAMPLES = """
[bold]Examples[/]

  penstock ui --open                        open the dashboard in the browser
  penstock ui --brokers kafka:9092 --port 8080
  penstock ui --allow-writes                also pause and resume apps, and replay dead letters
  penstock ui --app shop:app                records are decoded as the app's handlers do
"""


def register(app: typer.Typer) -> None:
    app.command("ui", epilog=_EXAMPLES, rich_help_panel=PANEL)(ui)


def ui(
    *,
    brokers: Brokers = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Listen on this address. Others than 127.0.0.1 can be reached from outside."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="Listen on this port; 0 is any free port.")] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open the dashboard in the browser.")] = False,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Let the page change things. Each change is confirmed and logged.")
    ] = False,
    app: OfApp = None,
    registry: RegistryUrl = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Serve the dashboard: groups, lag, members, rebalances, dead letters and running apps, in your browser.

    It runs until Ctrl+C. It needs no Kafka to start: the page shows how to start one, and continues when it answers.
    """
    options = DashboardOptions(host, port, allow_writes)
    stop = threading.Event()
    with (
        stop_on_signals(stop, lambda _line: None),
        serve_dashboard(
            options,
            connect=partial(connect, brokers, config, settings),
            note=_note,
            decoding=partial(decoding, app=app, registry=registry, config=config),
        ) as served,
    ):
        if not served.is_local:
            warn_of_others(served.host)
        if as_json:
            print_json_data({"url": served.url, "host": served.host, "port": served.port, "writes": allow_writes})
        else:
            print_line(f"Dashboard: {served.url}")
            mode = "It may change things (--allow-writes)." if allow_writes else "It is read-only."
            err.print(
                f"{mode} The link is the key: share it with nobody. Stop with Ctrl+C.", style="dim", soft_wrap=True
            )
        with opened_in_browser(served.url) if open_ else nullcontext(True) as is_open:
            if not is_open:
                err.print("No browser could be started here: open the link yourself.", style="yellow")
            stop.wait()
    if not as_json:
        err.print("Stopped.", style="dim")


def warn_of_others(host: str) -> None:
    err.print(
        f"WARNING: {host} can be reached from other machines. Whoever has the link sees your records, and nothing is "
        "encrypted. Use --host 127.0.0.1 with an SSH tunnel, or a proxy with TLS.",
        style="bold red",
        soft_wrap=True,
    )


def _note(line: str) -> None:
    err.print(line, style="bold", soft_wrap=True)
