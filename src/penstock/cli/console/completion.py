"""Completes names of topics and groups in the shell.

``penstock --install-completion`` installs it once. The brokers are those of ``--brokers`` earlier in the line, of
``PENSTOCK_BROKERS``, of ``penstock.toml`` or of the embedded Kafka. On any error there are no names: an error message
would appear inside the line that the user is typing.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Annotated, Any

import typer

from penstock.cli.console.connect import connect
from penstock.core.text.foreign_text import printable_line
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import Groups


def complete_topics(ctx: typer.Context, incomplete: str) -> list[str]:
    # Internal topics are offered only once the user has begun to type a name.
    return _complete(
        ctx, incomplete, lambda cluster: (name for name in cluster.topics() if incomplete or not name.startswith("__"))
    )


def complete_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    return _complete(ctx, incomplete, lambda cluster: (each.name for each in Groups(cluster).of_consumers()))


TopicName = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topics)]
OptionalTopicName = Annotated[str | None, typer.Argument(metavar="TOPIC", autocompletion=complete_topics)]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=complete_groups)]
GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP", autocompletion=complete_groups)]
OptionalGroupNames = Annotated[list[str] | None, typer.Argument(metavar="GROUP", autocompletion=complete_groups)]


def _complete(ctx: typer.Context, incomplete: str, names: Callable[[Cluster], Iterable[str]]) -> list[str]:
    given: dict[str, Any] = ctx.params
    with suppress(Exception):
        brokers = given.get("brokers") or os.environ.get("PENSTOCK_BROKERS")
        cluster = connect(brokers, given.get("config"), given.get("settings"))
        # Leave out names with control characters: a terminal would obey them.
        return sorted(name for name in names(cluster) if name.startswith(incomplete) and printable_line(name) == name)
    return []
