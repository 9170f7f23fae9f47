"""`make chaos-spark`: records through a real Spark cluster whose executors and driver are killed with -9."""

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

from chaos_spark.chaos_spark_run import ChaosSparkRun, Options, Outcome
from penstock.devkit import Embedded, UpOptions
from standalone import StandaloneCluster

err = Console(stderr=True)


class Delivery(StrEnum):
    exactly_once = "exactly-once"
    at_least_once = "at-least-once"


def main(
    *,
    records: Annotated[int, typer.Option(help="How many records flow.")] = 200_000,
    executor_kills: Annotated[int, typer.Option(help="How often an executor is killed.")] = 5,
    driver_kills: Annotated[int, typer.Option(help="How often the driver is killed and started again.")] = 2,
    delivery: Annotated[Delivery, typer.Option(help="What the app promises.")] = Delivery.exactly_once,
    seconds: Annotated[float, typer.Option(help="When to give up.")] = 900.0,
    seed: Annotated[int | None, typer.Option(help="Picks the kills; a new one each time by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures and problems as JSON.")] = False,
) -> None:
    """Runs one handler on a standalone cluster under kills; exits with 1 if a promise was broken."""
    options = Options(
        records=records,
        executor_kills=executor_kills,
        driver_kills=driver_kills,
        delivery=delivery.value,
        seconds=seconds,
        seed=secrets.randbelow(1_000_000) if seed is None else seed,
    )
    # Treat SIGTERM like Ctrl+C. Otherwise a terminated run would leave a broker and a cluster running.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    err.print(f"seed {options.seed}")
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-spark-"))
    kafka = Embedded(folder / "kafka")
    try:
        brokers = str(kafka.up(UpOptions(port=0)).bootstrap)
        with StandaloneCluster(folder / "spark") as spark:
            outcome = _show(brokers, spark, folder, options)
    finally:
        kafka.down()
        shutil.rmtree(folder / "kafka", ignore_errors=True)
    if as_json:
        typer.echo(json.dumps({"seed": options.seed, **outcome.figures, "problems": outcome.problems}, indent=2))
    else:
        _print(outcome)
    if outcome.problems:
        err.print(f"The words and events of every driver are in {folder}; the same kills again: --seed {options.seed}")
        raise typer.Exit(1)
    shutil.rmtree(folder)


def _show(brokers: str, spark: StandaloneCluster, folder: Path, options: Options) -> Outcome:
    columns = TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting", total=options.records)

        def tell(text: str, committed: int) -> None:
            if text.endswith("killed"):
                progress.console.print(f"{text} at {committed:,} committed", style="dim")
            else:
                progress.update(task, description=text, completed=committed)

        return ChaosSparkRun(brokers, spark, folder, options, tell).run()


def _print(outcome: Outcome) -> None:
    for name, value in outcome.figures.items():
        typer.echo(f"{name:18} {value:>12,}")
    typer.echo("\n".join(f"✗ {problem}" for problem in outcome.problems) or "✓ every promise held")


if __name__ == "__main__":
    typer.run(main)
