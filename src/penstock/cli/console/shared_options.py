"""Options that several commands share, with one name and one help text."""

from typing import Annotated

import typer

from penstock.devkit import embedded_brokers
from penstock.errors import ServerError

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


def choose_brokers(given: str | None, declared: str | None = None) -> str:
    """Return the brokers of the flag or the environment, else those of the app, else the embedded Kafka."""
    chosen = given or declared or embedded_brokers()
    if chosen is None:
        raise ServerError(
            "No brokers are configured, and the embedded Kafka is not running.",
            hint="Start the embedded Kafka with `penstock up`, or name your brokers with --brokers HOST:PORT.",
        )
    return chosen
