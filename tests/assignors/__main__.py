"""`make fuzz-assignors`: compares Penstock's assignors with Kafka's own on random groups."""

import json
import secrets
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from assignors.fuzz import KAFKAS, Tally, fuzz

_SHOWN = 3


def main(
    *,
    cases: Annotated[int, typer.Option(help="How many groups for each assignor.")] = 100_000,
    seed: Annotated[int | None, typer.Option(help="Picks the groups; a new one each time by default.")] = None,
    orders: Annotated[int, typer.Option(help="In how many other member orders Java gets each group.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False,
) -> None:
    """Exits with 1 if an answer differs."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    err = Console(stderr=True)
    err.print(f"seed {seed}")
    tallies: dict[str, Tally] = {}
    columns = TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=err) as progress:
        for assignor in KAFKAS:
            task = progress.add_task(assignor.name, total=cases)
            tallies[assignor.name] = fuzz(
                assignor,
                count=cases,
                seed=seed,
                orders=orders,
                tell=lambda done, task=task: progress.update(task, completed=done),  # type: ignore[misc]
            )
    if as_json:
        typer.echo(json.dumps({"seed": seed, **{name: asdict(tally) for name, tally in tallies.items()}}, indent=2))
    else:
        _print(tallies)
    if any(tally.differing for tally in tallies.values()):
        raise typer.Exit(1)


def _print(tallies: dict[str, Tally]) -> None:
    console = Console()
    table = Table(
        "assignor",
        "cases",
        "same",
        "same without invalid claims",
        "Java unsound, Penstock sound",
        "differing",
        "swayed by order",
    )
    for name, tally in tallies.items():
        figures = (
            tally.cases, tally.same, tally.same_but_for_claims, tally.unsound, len(tally.differing), tally.swayed
        )  # fmt: skip
        table.add_row(name, *(f"{figure:,}" for figure in figures))
    console.print(table)
    for tally in tallies.values():
        for text in sorted(tally.differing, key=len)[:_SHOWN]:
            console.print(text)


if __name__ == "__main__":
    typer.run(main)
