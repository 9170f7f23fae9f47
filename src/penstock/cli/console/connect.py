"""Which cluster a command talks to, and how: from flags, the environment and ``penstock.toml``, as for ``run``."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock.app import App
from penstock.app.config import configured, from_environment, from_file, from_flags
from penstock.cli.console.shared_options import choose_brokers
from penstock.kafka import Cluster

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
# Of the variables only these are about the cluster; the others are for the handlers of some app.
_VARIABLES = "PENSTOCK_SETTINGS_"


def connect(brokers: str | None, config: Path | None, settings: Sequence[str] | None) -> Cluster:
    """``brokers`` is that of the command line or the environment, which win over the file."""
    flags = [each if each.startswith(_SETTINGS) else f"{_SETTINGS}{each}" for each in settings or ()]
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    sources = [
        [each for each in from_file(config, None) if each.handler is None],
        from_environment(variables, []),
        from_flags(flags, []),
    ]
    app = configured(App("penstock"), sources).app
    cluster = Cluster(choose_brokers(brokers, app.brokers), app.settings)
    # Asked at once: something that listens and never answers would be waited for by each question of a command.
    cluster.id()
    return cluster
