"""``penstock demo``."""

import threading
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.cli.console.progress_bars import Steps
from penstock.cli.console.screen import err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.core.text.foreign_text import printable_line
from penstock.core.text.plurals import counted
from penstock.demo.demo_report import DemoReport
from penstock.demo.demo_runner import DemoOptions, run_demo
from penstock.lifecycle import stop_on_signals

_EXAMPLES = """
[bold]Examples[/]

  penstock demo                             100,000 orders through Spark, then through the local engine
  penstock demo --records 1000000
  penstock demo --engine local --keep       keep Kafka and the topics, to look at them
"""


class Engines(StrEnum):
    both = "both"
    spark = "spark"
    local = "local"


def register(app: typer.Typer) -> None:
    app.command("demo", epilog=_EXAMPLES)(demo)


def demo(
    *,
    records: Annotated[int, typer.Option(min=1, help="How many orders to produce.")] = 100_000,
    engine: Annotated[Engines, typer.Option(help="The engine that runs the demo app.")] = Engines.both,
    keep: Annotated[bool, typer.Option("--keep", help="Keep Kafka running, with the topics of the demo.")] = False,
    brokers: Brokers = None,
    as_json: Json = False,
) -> None:
    """Run the same handlers on Spark and on the local engine, on a real Kafka, and check that the results agree."""
    engines = ("spark", "local") if engine is Engines.both else (engine.value,)
    options = DemoOptions(records=records, engines=engines, brokers=brokers, keep=keep)
    stop = threading.Event()
    with Steps(err, quiet=as_json) as steps, stop_on_signals(stop, steps.step):
        report = run_demo(options, steps, stop)
    if as_json:
        print_json(report.as_json())
    else:
        out.print(picture(report))
        if keep:
            out.print()
            out.print(f"Kafka keeps running at {report.brokers}. `penstock down` stops it.", soft_wrap=True)
    if report.problems:
        raise typer.Exit(1)


def picture(report: DemoReport) -> Group:
    return Group(_summary(report), "", _partitions(report), "", _verdict(report))


def _summary(report: DemoReport) -> Table:
    table = Table(title=_title(report), title_justify="left")
    table.add_column("engine")
    for column in ("read", "written", "dead-lettered", "skipped", "seconds", "records/s"):
        table.add_column(column, justify="right")
    for engine in report.engines:
        counts = engine.counts
        table.add_row(
            engine.engine,
            f"{counts.read:,}",
            f"{counts.written:,}",
            f"{counts.dead_lettered:,}",
            f"{counts.skipped:,}",
            f"{engine.seconds:.1f}",
            f"{engine.records_per_second:,.0f}",
        )
    return table


def _title(report: DemoReport) -> str:
    orders = counted(report.expected.read, "order")
    names = [each.engine for each in report.engines]
    return f"{orders} on the {names[0]} engine" if len(names) == 1 else f"{orders} on each engine"


def _partitions(report: DemoReport) -> Table:
    table = Table(title=f"Topic {report.source}, partition by partition", title_justify="left")
    table.add_column("partition", justify="right")
    table.add_column("end", justify="right")
    for engine in report.engines:
        table.add_column(f"{engine.engine} committed", justify="right")
        table.add_column("lag", justify="right")
    for row in zip(*(engine.partitions for engine in report.engines), strict=True):
        cells = [cell for each in row for cell in (f"{each.committed or 0:,}", f"{each.lag:,}")]
        table.add_row(str(row[0].partition), f"{row[0].end:,}", *cells)
    return table


def _verdict(report: DemoReport) -> Text:
    if report.problems:
        return Text("\n".join(f"✗ {printable_line(problem)}" for problem in report.problems), style="bold red")
    agreed = f"✓ both engines agree: {report.agreement}" if report.agreement else "✓ every count is right"
    return Text(printable_line(agreed), style="bold green")
