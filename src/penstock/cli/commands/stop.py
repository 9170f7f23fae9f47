"""``penstock stop``: stops a run on this machine cleanly, from another terminal or a script."""

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import psutil
import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.console.progress_bars import Steps
from penstock.cli.console.screen import err, out, print_json, print_line
from penstock.cli.console.shared_options import Json
from penstock.core.text.durations import seconds
from penstock.errors import StateError
from penstock.ops.live_runs import runs_called
from penstock.ops.runs import RegisteredRun, alive, look_again

_EXAMPLES = """
[bold]Examples[/]

  penstock stop                             list the runs on this machine
  penstock stop shop                        stop the app shop, or every run in the group shop
  penstock stop 4711 --timeout 5m           stop the run of process 4711
"""
_LOOK_SECONDS = 0.1


def register(app: typer.Typer) -> None:
    app.command("stop", epilog=_EXAMPLES)(stop)


def stop(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An app, a group or a process id.", show_default=False)
    ] = None,
    *,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="How long to wait until it has ended.")] = "2m",
    as_json: Json = False,
) -> None:
    """Stop a `penstock run` on this machine cleanly and wait until it has ended. Without a name, list the runs."""
    patience = seconds(timeout, name="--timeout")
    if name is None:
        _list(alive(), as_json=as_json)
        return
    runs = runs_called(name)
    for run in runs:
        _ask(run)
    deadline = time.monotonic() + patience
    with Steps(err, quiet=as_json) as steps:
        ended = [_await(run, deadline, steps, timeout=timeout) for run in runs]
    if as_json:
        print_json({"stopped": [_as_json(run) for run in ended]})
        return
    for run in ended:
        print_line(_how(run))


def _ask(run: RegisteredRun) -> None:
    """Send one signal. A second one would end the process at once, so a run that is already stopping gets none."""
    process = run.process
    if process is not None and not run.stopping:
        with suppress(psutil.NoSuchProcess):
            process.terminate()


def _await(run: RegisteredRun, deadline: float, steps: Steps, *, timeout: str) -> RegisteredRun:
    while run.process is not None:
        steps.step(f"Waiting for {run.app} (process {run.pid}, {run.engine} engine) to finish the records in progress")
        if time.monotonic() > deadline:
            raise StateError(
                f"{run.app} (process {run.pid}) did not end within {timeout}.",
                hint=f"It is still stopping. Keep waiting with `penstock stop {run.pid}`, or end it at once with "
                f"`kill -9 {run.pid}`: Kafka redelivers the records that are not committed.",
            )
        time.sleep(_LOOK_SECONDS)
    return look_again(run)


def _how(run: RegisteredRun) -> str:
    if run.ending is None:
        return f"{run.app} (process {run.pid}) was killed before it could stop cleanly."
    if run.ending.problem is not None:
        return f"{run.app} (process {run.pid}) ended with an error: {run.ending.problem}"
    counts = run.ending.counts
    return (
        f"{run.app} (process {run.pid}) stopped cleanly: {counts.read:,} read, {counts.written:,} written, "
        f"{counts.dead_lettered:,} dead-lettered, {counts.skipped:,} skipped."
    )


def _list(runs: list[RegisteredRun], *, as_json: bool) -> None:
    if as_json:
        print_json({"running": [_as_json(run) for run in runs]})
        return
    if not runs:
        out.print(Text.from_markup("No app is running. Start one with [bold]penstock run MODULE:APP[/]."))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("app", "engine", "groups", "process", "uptime"):
        table.add_column(column, no_wrap=True)
    for run in runs:
        minutes, rest = divmod(int(time.time() - run.born), 60)
        state = " (stopping)" if run.stopping else ""
        table.add_row(run.app, run.engine, ", ".join(run.groups), f"{run.pid}{state}", f"{minutes}m {rest:02}s")
    out.print(table)
    out.print()
    advice = "Stop one with [bold]penstock stop NAME[/]: its app, one of its groups or its process."
    out.print(Text.from_markup(advice))


def _as_json(run: RegisteredRun) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(run).items() if name not in ("host", "ending")}
    if run.process is None:
        problem = run.ending.problem if run.ending else "It was killed before it could stop cleanly."
        shown |= {"problem": problem, **(asdict(run.ending.counts) if run.ending else {})}
    return shown
