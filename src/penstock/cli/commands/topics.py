"""``penstock topics``."""

import time
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from penstock.cli.commands import topics_keys
from penstock.cli.commands.lag import PANEL
from penstock.cli.console.completion import TopicName
from penstock.cli.console.confirm import confirm
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.screen import err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import duration, moment, print_table, rate, size
from penstock.core.text.plurals import at_most, counted
from penstock.errors import ConfigError, TopicError
from penstock.ops.topic_facts import PartitionFacts, TopicFacts, require_fewer, topic_facts
from penstock.ops.topic_facts import grow as add_partitions

_LS_EXAMPLES = """
[bold]Examples[/]

  penstock topics ls
  penstock topics ls 'orders*' --json
"""
_DESCRIBE_EXAMPLES = """
[bold]Examples[/]

  penstock topics describe orders
"""
_CREATE_EXAMPLES = """
[bold]Examples[/]

  penstock topics create orders --partitions 12
  penstock topics create audit --partitions 3 --with retention.ms=-1 --with cleanup.policy=compact
"""
_GROW_EXAMPLES = """
[bold]Examples[/]

  penstock topics grow orders --partitions 24
"""
_NUMBERS = (
    "PARTITIONS",
    "REPLICATION",
    "MAX-RECORDS",
    "SIZE",
    "RATE",
    "SKEW",
    "RETENTION",
    "MARGIN",
    "PARTITION",
    "START",
    "END",
)
_SHARE = ("SHARE", "MAX-RECORDS")


def register(app: typer.Typer) -> None:
    topics = typer.Typer(help="Topics: list, describe, create, add partitions, find hot keys.", no_args_is_help=True)
    topics.command("ls", epilog=_LS_EXAMPLES)(ls)
    topics.command("describe", epilog=_DESCRIBE_EXAMPLES)(describe)
    topics.command("create", epilog=_CREATE_EXAMPLES)(create)
    topics.command("grow", epilog=_GROW_EXAMPLES)(grow)
    topics_keys.register(topics)
    app.add_typer(topics, name="topics", rich_help_panel=PANEL)


def ls(
    pattern: Annotated[str, typer.Argument(help="Only topics with names like this; * and ? are wildcards.")] = "*",
    *,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also internal topics, whose names start with __.")
    ] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """List topics with their partitions, records, rate of the last minute, skew and retention.

    MAX-RECORDS counts offsets. Transaction markers and compacted records have
    offsets too, so a topic may hold fewer records.
    """
    cluster = connect(brokers, config, settings)
    existing = cluster.topics()
    if not existing:
        cluster.require_sight("topic")
    names = sorted(name for name in existing if fnmatchcase(name, pattern) and (internal or not name.startswith("__")))
    found = topic_facts(cluster, names, now=time.time())
    if as_json:
        print_json({"topics": [_topic_json(each, time.time()) for each in found]})
        return
    if not found:
        err.print("No topics.")
        return
    columns = ("TOPIC", "PARTITIONS", "REPLICATION", "MAX-RECORDS", "SIZE", "RATE", "SKEW", "RETENTION", "CLEANUP")
    print_table(columns, [_row(each) for each in found], right=_NUMBERS)
    _show_errors(found)


def describe(
    topic: TopicName,
    *,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show each partition's leader, replicas, offsets, rate and age, and when retention deletes the oldest record."""
    cluster = connect(brokers, config, settings)
    cluster.require_topics([topic])
    now = time.time()
    (found,) = topic_facts(cluster, [topic], now=now, ages=True)
    if as_json:
        print_json(_topic_json(found, now))
        return
    columns = (
        "PARTITION", "LEADER", "REPLICAS", "IN-SYNC", "START", "END", "MAX-RECORDS", "SHARE", "SIZE", "RATE", "OLDEST",
    )  # fmt: skip
    print_table(
        columns, [_partition_row(each, found.max_records) for each in found.partitions], right=(*_NUMBERS, *_SHARE)
    )
    skew = "-" if found.skew is None else f"{found.skew:.2f}"
    facts = {
        "records": at_most(found.max_records, "record") + " (offsets from START to END)",
        "size": f"{size(found.bytes)} on disk, one copy",
        "rate": rate(found.rate),
        "skew": f"{skew} (the largest partition divided by the mean)",
        "retention": f"{duration(found.retention_seconds)} ({found.cleanup})",
        "margin": f"{duration(found.margin(now))} until retention may delete the oldest record",
    }
    for name, value in facts.items():
        out.print(f"  {name:<10}{value}", markup=False)
    _show_errors([found])


def create(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    *,
    partitions: Annotated[int, typer.Option(min=1, metavar="N", help="How many partitions.")] = 1,
    options: Annotated[
        list[str] | None, typer.Option("--with", metavar="NAME=VALUE", help="A topic setting. Repeatable.")
    ] = None,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Create a topic, with the brokers' default replication."""
    wanted = {}
    for option in options or ():
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise ConfigError(f"--with {option!r} is not NAME=VALUE.", hint="Write it like retention.ms=3600000.")
        wanted[name] = value
    created = connect(brokers, config, settings).create_topics([topic], partitions=partitions, config=wanted)
    if not created:
        raise TopicError(f"Topic {topic!r} exists already.", hint=f"See `penstock topics describe {topic}`.")
    print_json({"created": created}) if as_json else out.print(f"Created {topic}.", markup=False)


def grow(
    topic: TopicName,
    *,
    partitions: Annotated[int, typer.Option(min=1, metavar="N", help="New number of partitions.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Add partitions to a topic. This moves keys: first run `penstock topics keys TOPIC --partitions N`."""
    cluster = connect(brokers, config, settings)
    had = require_fewer(cluster, topic, partitions)
    question = f"Grow {topic} from {had} to {counted(partitions, 'partition')}? This cannot be undone."
    confirm(question, yes=yes)
    add_partitions(cluster, topic, partitions)
    if as_json:
        print_json({"topic": topic, "before": had, "partitions": partitions})
    else:
        out.print(f"{topic} has {counted(partitions, 'partition')}, {partitions - had} more than before.", markup=False)


def _row(each: TopicFacts) -> tuple[object, ...]:
    return (
        each.name,
        len(each.partitions),
        each.replication,
        f"{each.max_records:,}",
        size(each.bytes),
        rate(each.rate),
        None if each.skew is None else f"{each.skew:.2f}",
        duration(each.retention_seconds),
        each.cleanup,
    )


def _partition_row(each: PartitionFacts, total: int) -> tuple[object, ...]:
    return (
        each.partition,
        each.leader,
        ",".join(map(str, each.replicas)),
        ",".join(map(str, each.in_sync)),
        each.start,
        each.end,
        None if each.max_records is None else f"{each.max_records:,}",
        None if not total or each.max_records is None else f"{each.max_records / total:.1%}",
        size(each.bytes),
        rate(each.rate),
        moment(each.oldest),
    )


def _topic_json(each: TopicFacts, now: float) -> dict[str, Any]:
    return {
        "topic": each.name,
        "max_records": each.max_records,
        "bytes": each.bytes,
        "rate": each.rate,
        "replication": each.replication,
        "skew": each.skew,
        "retention_seconds": each.retention_seconds,
        "cleanup": each.cleanup,
        "margin_seconds": each.margin(now),
        "partitions": [
            {
                "partition": part.partition,
                "leader": part.leader,
                "replicas": list(part.replicas),
                "in_sync": list(part.in_sync),
                "start": part.start,
                "end": part.end,
                "bytes": part.bytes,
                "rate": part.rate,
                "oldest": part.oldest,
                "error": part.error,
            }
            for part in each.partitions
        ],
    }


def _show_errors(found: Iterable[TopicFacts]) -> None:
    for each in found:
        for part in each.partitions:
            if part.error:
                err.print(f"{each.name}-{part.partition}: {part.error}", style="yellow", markup=False)
