"""``penstock ship``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import __version__
from penstock.app import load_app
from penstock.cli.console.confirm import confirm_replacing
from penstock.cli.console.screen import out, print_json
from penstock.cli.console.shared_options import Json
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.spark.session.shipping import Shipment

_EXAMPLES = """
[bold]Examples[/]

  penstock ship shop:app                    show what executors get, and what they need
  penstock ship shop:app -o shop.zip        write the archive, for spark-submit --py-files shop.zip
"""


def register(app: typer.Typer) -> None:
    app.command("ship", epilog=_EXAMPLES)(ship)


def ship(
    reference: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="The app: its module and its variable, such as shop:app.")
    ],
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The archive to write.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace an existing archive without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Pack an app and Penstock for the executors of a Spark cluster, and list what else they need.

    `penstock run --engine spark` does this automatically.
    Use this command with spark-submit, or to see the list.
    """
    if output is not None and output.suffix != ".zip":
        raise ConfigError(
            f"{output} does not end in .zip, so Spark cannot import from it.", hint="Name it like shop.zip."
        )
    confirm_replacing([output] if output is not None else [], yes=yes)
    app = load_app(reference)
    # Imported here because the import is slow.
    from penstock.spark.session.shipping import shipment_of, write_archive  # noqa: PLC0415

    shipment = shipment_of(app)
    if output is not None:
        try:
            write_archive(shipment, output)
        except OSError as error:
            raise ConfigError(
                f"Cannot write {output}: {(error.strerror or str(error)).lower()}.",
                hint="Name a file in a folder that you can write to.",
            ) from error
    if as_json:
        print_json(_summary(shipment, output))
    else:
        _print(_summary(shipment, output))


def _summary(shipment: "Shipment", output: Path | None) -> dict[str, Any]:
    return {
        "archive": None if output is None else str(output.resolve()),
        "modules": shipment.own(),
        "files": sorted(shipment.files),
        "penstock": __version__,
        "python": shipment.python,
        "requirements": list(shipment.requirements),
        "spark_packages": list(shipment.spark_packages),
    }


def _print(summary: dict[str, Any]) -> None:
    if summary["archive"]:
        out.print(
            f"Wrote {summary['archive']}: {counted(len(summary['files']), 'file')}.", markup=False, soft_wrap=True
        )
    shipped = ", ".join([*summary["modules"], f"penstock {summary['penstock']}"])
    out.print(f"Shipped: {shipped}", markup=False, soft_wrap=True)
    out.print(f"Executors need Python {summary['python']} with:")
    for line in summary["requirements"]:
        out.print(f"  {line}", markup=False)
    if summary["spark_packages"]:
        out.print(f"spark-submit needs: --packages {','.join(summary['spark_packages'])}", markup=False, soft_wrap=True)
