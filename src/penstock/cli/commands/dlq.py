"""``penstock dlq``."""

import re
import sys
import threading
import time
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer
from rich.progress import Progress

from penstock.cli.commands.lag import PANEL
from penstock.cli.console.completion import OptionalTopicName, TopicName
from penstock.cli.console.confirm import confirm
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.dead_letter_panels import letter_json, show_letter
from penstock.cli.console.dead_letter_tables import HeaderCheck, say_no_topics, show_counts, show_topics
from penstock.cli.console.decode_flags import KeyAs, OfApp, RegistryUrl, ValueAs, record_decoder_for
from penstock.cli.console.edit_dead_letter import edit_letter
from penstock.cli.console.replay_tables import plan_json, show_plan, show_sent
from penstock.cli.console.screen import err, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.core.filters.expression import Expression
from penstock.core.settings import shown_command
from penstock.core.text.plurals import counted
from penstock.core.text.timestamps import moment_or_ago
from penstock.errors import ConfigError, TopicError
from penstock.lifecycle import stop_on_signals
from penstock.ops.dead_letters import Choice, Letter, chosen_letters, count_letters, dead_letter_topics
from penstock.ops.record_view import DecoderFor, RecordView
from penstock.ops.replay import PARKED, DeadLetterReplay, ReplayPlan, ReplayRequest, Sent
from penstock.ops.replay_audit import Audit

_LS_EXAMPLES = """
[bold]Examples[/]

  penstock dlq ls                                  topics whose names look like dead-letter topics
  penstock dlq ls orders.dlq                       counts by source, group and reason
  penstock dlq ls orders.dlq --by hour --since 1d
"""
_SHOW_EXAMPLES = """
[bold]Examples[/]

  penstock dlq show orders.dlq --reason ValueError --limit 3
  penstock dlq show orders.dlq --at 0:17
  penstock dlq show orders.dlq --where 'value["amount"] > 100' --json
  penstock dlq show orders.dlq --value-as avro
  penstock dlq show orders.dlq --app shop:app      decoded as the handler that failed does
"""
_REPLAY_EXAMPLES = """
[bold]Examples[/]

  penstock dlq replay orders.dlq                             shows what it would send where
  penstock dlq replay orders.dlq --execute                   sends each once to its source topic
  penstock dlq replay orders.dlq --reason Timeout --since 2h --rate 50 --execute --yes
  penstock dlq replay orders.dlq --to orders.fixed --execute
  penstock dlq replay orders.dlq --at 0:17 --edit --execute  edits one before it is sent
"""
_PARTITION_OFFSET = re.compile(r"(\d{1,10}):(\d{1,19})")


class LetterGrouping(StrEnum):
    reason = "reason"
    source = "source"
    group = "group"
    hour = "hour"


Reason = Annotated[str, typer.Option(metavar="TEXT", help="Only if the error's type or message contains this.")]
Source = Annotated[str, typer.Option(metavar="TOPIC", help="Only records that came from this topic.")]
OfGroup = Annotated[str, typer.Option("--group", metavar="GROUP", help="Only records that failed in this group.")]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only if it failed since this time: 2h (ago), or 2030-01-31T12:00:00."),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only if it failed before this time: 2h (ago), or 2030-01-31T12:00:00."),
]
Key = Annotated[str | None, typer.Option(metavar="TEXT", help="Only records with this key.")]
Where = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Only records for which this Python expression is true.")
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="P:OFFSET", help="Only the dead letter at this partition and offset. Repeatable."),
]


def register(app: typer.Typer) -> None:
    dlq = typer.Typer(help="Dead letters: list, show, replay.", no_args_is_help=True)
    dlq.command("ls", epilog=_LS_EXAMPLES)(ls)
    dlq.command("show", epilog=_SHOW_EXAMPLES)(show)
    dlq.command("replay", epilog=_REPLAY_EXAMPLES)(replay)
    app.add_typer(dlq, name="dlq", rich_help_panel=PANEL)


def ls(
    topic: OptionalTopicName = None,
    *,
    by: Annotated[LetterGrouping | None, typer.Option(help="Count by this. Default: reason.")] = None,
    reason: Reason = "",
    source: Source = "",
    group: OfGroup = "",
    since: Since = None,
    until: Until = None,
    key: Key = None,
    where: Where = None,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Count dead letters by reason, source, group or hour. Without arguments, list the dead-letter topics."""
    choice = _choice(reason=reason, source=source, group=group, since=since, until=until, key=key, where=where)
    cluster = connect(brokers, config, settings)
    if topic is None and by is None and choice == Choice():
        show_topics(dead_letter_topics(cluster), as_json=as_json)
        return
    topics = [topic] if topic is not None else list(dead_letter_topics(cluster))
    if not topics and not as_json:
        say_no_topics()
        return
    chosen, header_check = by or LetterGrouping.reason, HeaderCheck()
    found = {name: count_letters(header_check(chosen_letters(cluster, name, choice)), by=chosen) for name in topics}
    _warn_of_failed_where(choice)
    show_counts(found, by=chosen, named=topic is not None, as_json=as_json)
    if topic is not None:
        header_check.warn(topic)


def show(
    topic: TopicName,
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show at most N dead letters.")] = 10,
    at: At = None,
    reason: Reason = "",
    source: Source = "",
    group: OfGroup = "",
    since: Since = None,
    until: Until = None,
    key: Key = None,
    where: Where = None,
    value_as: ValueAs = None,
    key_as: KeyAs = None,
    app: OfApp = None,
    registry: RegistryUrl = None,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show dead letters one by one: the record, and why it failed."""
    choice = _choice(reason=reason, source=source, group=group, since=since, until=until, key=key, where=where, at=at)
    record_decoder = record_decoder_for(value_as=value_as, key_as=key_as, app=app, registry=registry, config=config)
    choice = replace(choice, values=lambda letter: letter.values(_seen(letter, record_decoder)))
    cluster = connect(brokers, config, settings)
    header_check = HeaderCheck()
    letters = list(header_check(islice(chosen_letters(cluster, topic, choice), limit)))
    _warn_of_failed_where(choice)
    header_check.warn(topic)
    if as_json:
        print_json({"topic": topic, "letters": [letter_json(each, _seen(each, record_decoder)) for each in letters]})
        return
    for each in letters:
        show_letter(each, _seen(each, record_decoder))
    if not letters:
        err.print("No dead letters.")


def replay(
    topic: TopicName,
    *,
    to: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Send all to this topic. Default: each to its source topic.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, metavar="N", help="At most N records a second.")] = None,
    returns: Annotated[
        int,
        typer.Option(
            "--max-returns", min=1, metavar="N", help=f"Send a dead letter that was replayed N times to TOPIC{PARKED}."
        ),
    ] = 3,
    again: Annotated[bool, typer.Option("--again", help="Also send what was replayed before.")] = False,
    edit: Annotated[bool, typer.Option("--edit", help="Edit the dead letter of --at in your editor first.")] = False,
    at: At = None,
    reason: Reason = "",
    source: Source = "",
    group: OfGroup = "",
    since: Since = None,
    until: Until = None,
    key: Key = None,
    where: Where = None,
    execute: Annotated[bool, typer.Option("--execute", help="Send them. Without it, the plan is only shown.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --execute: do not ask for confirmation.")] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Send dead letters back to their source topics. Without --execute, only show the plan.

    Each dead letter is sent once, even if the command is interrupted.
    Run the same command again to continue.
    """
    if edit and len(at or ()) != 1:
        raise ConfigError(
            "--edit needs exactly one --at.",
            hint="Name one dead letter with --at PARTITION:OFFSET. `penstock dlq show` lists them.",
        )
    choice = _choice(reason=reason, source=source, group=group, since=since, until=until, key=key, where=where, at=at)
    cluster = connect(brokers, config, settings)
    job = DeadLetterReplay(cluster, ReplayRequest(topic, choice, to=to, returns=returns, rate=rate, again=again))
    plan = job.plan()
    _warn_of_failed_where(choice)
    if not as_json:
        show_plan(topic, plan)
    if at and not plan.total and not plan.replayed_before:
        raise TopicError(
            f"{topic} has no dead letter at --at that can be replayed.", hint="`penstock dlq show` lists them."
        )
    sent = Sent()
    stop = threading.Event()
    if execute and plan.total:
        confirm(_question(plan), yes=yes)
        audit = Audit(cluster.id(), command=shown_command(sys.argv))
        with (
            Progress(console=err, disable=as_json or not err.is_terminal, transient=True) as bar,
            stop_on_signals(stop, lambda line: err.print(line, style="bold")),
        ):
            task = bar.add_task("letters", total=plan.total)
            sent = job.carry_out(
                plan,
                audit=audit,
                stop=stop,
                progress=lambda count: bar.update(task, completed=count),
                edit=edit_letter if edit else None,
            )
    if as_json:
        print_json(plan_json(plan, sent=sent, executed=execute))
    elif not execute:
        err.print("Nothing was sent. Add --execute to replay these dead letters.", style="bold")
    else:
        show_sent(topic, plan, sent)
    # Fewer than planned without a stop is fine: another replay, which this one fenced, had sent them in the meantime.
    if stop.is_set() and sent.total < plan.total:
        err.print("Stopped early. Run the same command again to send the rest.", style="yellow")
        raise typer.Exit(1)


def _question(plan: ReplayPlan) -> str:
    going, parked = plan.going.total(), counted(plan.parked, "dead letter")
    if not going:
        return f"Park {parked} that came back too often?"
    return f"Replay {counted(going, 'dead letter')}" + (f", and park {parked}?" if plan.parked else "?")


def _choice(
    *,
    reason: str,
    source: str,
    group: str,
    since: str | None,
    until: str | None,
    key: str | None,
    where: str | None,
    at: list[str] | None = None,
) -> Choice:
    now = time.time()
    return Choice(
        reason=reason,
        source=source,
        group=group,
        key=None if key is None else key.encode(),
        since=None if since is None else moment_or_ago(since, now=now, name="--since"),
        until=None if until is None else moment_or_ago(until, now=now, name="--until"),
        where=None if where is None else Expression(where),
        at=frozenset(_partition_and_offset(each) for each in at or ()),
    )


def _partition_and_offset(text: str) -> tuple[int, int]:
    match = _PARTITION_OFFSET.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"--at {text!r} is not a partition and an offset.", hint="Write PARTITION:OFFSET, such as 0:17."
        )
    return int(match[1]), int(match[2])


def _warn_of_failed_where(choice: Choice) -> None:
    where = choice.where
    if where is not None and where.misses:
        err.print(
            f"--where failed for {counted(where.misses, 'record')}, which did not match: {where.example}",
            style="yellow",
            markup=False,
        )


def _seen(letter: Letter, record_decoder: DecoderFor) -> RecordView:
    """Decode it as the handler that failed would have."""
    return record_decoder(letter.note.topic, letter.note.group).see(letter.record)
