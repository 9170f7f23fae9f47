"""Connects a command to its cluster, by flags, environment and ``penstock.toml``, as ``penstock run`` does."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock.app import App
from penstock.app.config import Names, configured, from_environment, from_file, from_flags
from penstock.kafka import Cluster
from penstock.lifecycle import choose_brokers

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="PENSTOCK_CONFIG",
        help="File with brokers and \\[settings]. Default: penstock.toml in this folder.",
    ),
]
ClientSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the Kafka client, such as security.protocol=SASL_SSL. Repeatable.",
    ),
]

_SETTINGS = "settings."
# Only these variables are about the cluster. The others are for the handlers of an app.
_VARIABLES = "PENSTOCK_SETTINGS_"


def connect(brokers: str | None, config: Path | None, settings: Sequence[str] | None) -> Cluster:
    """Connect to the cluster. ``brokers``, from the flag or the environment, overrides the file."""
    flags = [each if each.startswith(_SETTINGS) else f"{_SETTINGS}{each}" for each in settings or ()]
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    sources = [
        [each for each in from_file(config, None) if each.owner.kind is None],
        from_environment(variables, Names()),
        from_flags(flags, Names()),
    ]
    app = configured(App("penstock"), sources).app
    cluster = Cluster(choose_brokers(brokers, app.brokers), app.settings)
    # Ask for the id at once: if something listens there and never answers, only this one request waits for it.
    cluster.id()
    return cluster
