"""`make chaos-once`: records into a topic, a database and a queue under kill -9, freezes and broker restarts."""

import json
import secrets
import shutil
import signal
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from chaos_once.chaos_once_run import ChaosOnceRun, Options, Outcome
from penstock.devkit import Embedded, UpOptions

err = Console(stderr=True)


class Kind(StrEnum):
    native = "native"
    self_managed = "self-managed"


class SinkName(StrEnum):
    exactly_once = "exactly-once"
    postgresql = "postgresql"
    share = "share"


def main(
    *,
    sink: Annotated[list[SinkName] | None, typer.Option(help="Where records go; one after the other.")] = None,
    member: Annotated[list[Kind] | None, typer.Option(help="Of which kind instances are, in turns.")] = None,
    records: Annotated[int, typer.Option(help="How many records flow into each.")] = 100_000,
    faults: Annotated[int, typer.Option(help="How many kills and freezes.")] = 20,
    bounces: Annotated[int, typer.Option(help="How many clean stops.")] = 4,
    restarts: Annotated[int, typer.Option(help="How often the broker is restarted.")] = 3,
    seconds: Annotated[float, typer.Option(help="When to give up.")] = 1_800.0,
    seed: Annotated[int | None, typer.Option(help="Picks the faults; a new one each time by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures and problems as JSON.")] = False,
) -> None:
    """Runs two instances under faults; exits with 1 if a promise was broken."""
    # Treat SIGTERM like Ctrl+C. Otherwise a terminated run would leave a broker running.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    chosen = secrets.randbelow(1_000_000) if seed is None else seed
    err.print(f"seed {chosen}")
    broken = False
    for each in sink or list(SinkName):
        options = Options(
            sink=each.value,
            members=tuple(kind.value for kind in member or [Kind.native]),
            records=records,
            faults=faults,
            bounces=bounces,
            restarts=restarts,
            seconds=seconds,
            seed=chosen,
        )
        outcome = _run(options)
        broken = broken or bool(outcome.problems)
        if as_json:
            figures = {"sink": each.value, "seed": chosen, **outcome.figures, "problems": outcome.problems}
            typer.echo(json.dumps(figures, indent=2))
        else:
            _print(each.value, outcome)
    if broken:
        raise typer.Exit(1)


def _run(options: Options) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-once-"))
    kafka = Embedded(folder / "kafka")
    columns = TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    try:
        brokers = str(kafka.up(UpOptions(port=0)).bootstrap)
        with Progress(*columns, console=err, transient=True) as progress:
            task = progress.add_task(options.sink, total=options.records)

            def tell(text: str, arrived: int) -> None:
                if text in {"kill", "freeze", "bounce", "restart"}:
                    progress.console.print(f"{text} at {arrived:,} arrived", style="dim")
                else:
                    progress.update(task, description=text, completed=arrived)

            outcome = ChaosOnceRun(brokers, folder, options, tell, kafka).run()
    finally:
        kafka.down()
        shutil.rmtree(folder / "kafka", ignore_errors=True)
    if outcome.problems:
        err.print(f"The events of every process are in {folder}; the same faults again: --seed {options.seed}")
    else:
        shutil.rmtree(folder)
    return outcome


def _print(sink: str, outcome: Outcome) -> None:
    figures = " · ".join(f"{name} {value:,}" for name, value in outcome.figures.items())
    typer.echo(f"{sink}: {figures}")
    typer.echo("\n".join(f"✗ {problem}" for problem in outcome.problems) or "✓ every promise held")


if __name__ == "__main__":
    typer.run(main)
