"""Names of topics and groups, for the shell's Tab key.

``penstock --install-completion`` installs it once. The cluster is that of a ``--brokers`` earlier in the line, of
``PENSTOCK_BROKERS`` or of ``penstock.toml``, or the embedded one. Whatever goes wrong, there are just no names: a
message would land in the line that somebody is typing.
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
    # Topics of Kafka's own are for those who begin to type their names.
    return _complete(
        ctx, incomplete, lambda cluster: (name for name in cluster.topics() if incomplete or not name.startswith("__"))
    )


def complete_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    return _complete(ctx, incomplete, lambda cluster: (each.name for each in Groups(cluster).of_consumers()))


TopicName = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topics)]
OptionalTopicName = Annotated[str | None, typer.Argument(metavar="[TOPIC]", autocompletion=complete_topics)]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=complete_groups)]
GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP...", autocompletion=complete_groups)]
OptionalGroupNames = Annotated[list[str] | None, typer.Argument(metavar="GROUP...", autocompletion=complete_groups)]


def _complete(ctx: typer.Context, incomplete: str, names: Callable[[Cluster], Iterable[str]]) -> list[str]:
    given: dict[str, Any] = ctx.params
    with suppress(Exception):
        brokers = given.get("brokers") or os.environ.get("PENSTOCK_BROKERS")
        cluster = connect(brokers, given.get("config"), given.get("settings"))
        # One that would have to be quoted, or that a terminal would obey, is better typed by hand.
        return sorted(name for name in names(cluster) if name.startswith(incomplete) and printable_line(name) == name)
    return []
