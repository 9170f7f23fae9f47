"""Options that several commands share, with one name and one help text."""

from typing import Annotated

import typer

Brokers = Annotated[
    str | None,
    typer.Option(
        "--brokers",
        "-b",
        envvar="PENSTOCK_BROKERS",
        metavar="HOST:PORT,...",
        help="Kafka's bootstrap servers. Default: those of the app or penstock.toml, else the embedded Kafka.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
