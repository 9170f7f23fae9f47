"""`make chaos`: kills, freezes, stops and starts members for a minute on a real Kafka, then checks every guarantee."""

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from chaos.chaos_run import Options, Outcome, run_chaos, suited
from chaos.checker import report
from penstock.devkit import Embedded, UpOptions

err = Console(stderr=True)


def main(
    *,
    seconds: Annotated[float, typer.Option(help="For how long faults occur.")] = 60.0,
    records: Annotated[int, typer.Option(help="How many records are written meanwhile.")] = 100_000,
    seed: Annotated[int | None, typer.Option(help="Picks the faults; a new one each time by default.")] = None,
    members: Annotated[
        str, typer.Option(help="Kinds of members, in turns: native, self-managed, own, java.")
    ] = "native",
    strategy: Annotated[str, typer.Option(help="The assignor, one that Java has too.")] = "cooperative-sticky",
    as_json: Annotated[bool, typer.Option("--json", help="The figures and violations as JSON.")] = False,
) -> None:
    """Runs three members of a group under random faults; exits with 1 if a guarantee was broken."""
    chosen = secrets.randbelow(1_000_000) if seed is None else seed
    kinds = suited(tuple(members.split(",")))
    options = Options(records=records, seconds=seconds, seed=chosen, strategy=strategy, **kinds)
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    err.print(f"seed {options.seed}")
    with _kafka(folder) as brokers:
        outcome = _show(brokers, folder, options)
    if as_json:
        broken = [{"rule": violation.rule, "text": violation.text} for violation in outcome.violations]
        typer.echo(json.dumps({"seed": options.seed, **outcome.figures, "violations": broken}, indent=2))
    else:
        _print(outcome)
    if outcome.violations:
        err.print(f"The events of every process are in {folder}. To repeat these faults: --seed {options.seed}")
        raise typer.Exit(1)
    shutil.rmtree(folder)


@contextmanager
def _kafka(folder: Path) -> Iterator[str]:
    """A separate Kafka, so that a run starts with no data and disturbs nothing else."""
    embedded = Embedded(folder / "kafka")
    try:
        yield str(embedded.up(UpOptions(port=0)).bootstrap)
    finally:
        embedded.down()
        shutil.rmtree(folder / "kafka", ignore_errors=True)


def _show(brokers: str, folder: Path, options: Options) -> Outcome:
    columns = TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting", total=options.records)

        def tell(text: str, committed: int) -> None:
            if text in {"kill", "freeze", "leave", "join", "thawed"}:
                progress.console.print(f"{text} at {committed:,} committed", style="dim")
            else:
                progress.update(task, description=text, completed=committed)

        return run_chaos(brokers, folder, options, tell)


def _print(outcome: Outcome) -> None:
    table = Table("what", "how many")
    table.columns[1].justify = "right"
    for name, value in outcome.figures.items():
        table.add_row(name, f"{value:,}")
    console = Console()
    console.print(table)
    console.print(report(outcome.violations), markup=False)


if __name__ == "__main__":
    typer.run(main)
