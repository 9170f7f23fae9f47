"""``penstock offsets``."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.commands.lag import PANEL
from penstock.cli.console.completion import GroupName, OptionalGroupNames
from penstock.cli.console.confirm import confirm
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.screen import err, out, print_file, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import moment as shown_moment
from penstock.cli.console.tables import print_table
from penstock.core.progress.offset_csv import Plan, read_offsets, write_offsets
from penstock.core.progress.reset_rules import Scenario, To
from penstock.core.text.plurals import at_most, counted
from penstock.core.text.timestamps import moment, span
from penstock.errors import ConfigError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import Groups
from penstock.ops.offset_backups import OffsetBackup
from penstock.ops.offset_reset import OffsetMove, Offsets, ResetPlan, parse_scope

_RESET_EXAMPLES = """
[bold]Examples[/]

  penstock offsets reset shipping --topic orders --to-earliest              shows the changes
  penstock offsets reset shipping --topic orders --to-earliest --execute    makes them, after you confirm
  penstock offsets reset shipping --topic orders:0,2 --shift-by -100
  penstock offsets reset shipping --all-topics --to-datetime 2030-01-31T12:00:00
  penstock offsets reset shipping billing --all-topics --by-duration 2h
  penstock offsets undo shipping --execute                                  restores the offsets
"""
_UNDO_EXAMPLES = """
[bold]Examples[/]

  penstock offsets undo shipping                  shows the changes
  penstock offsets undo shipping --execute
"""
_EXPORT_EXAMPLES = """
[bold]Examples[/]

  penstock offsets export shipping > shipping.csv
  penstock offsets import shipping shipping.csv --execute
"""
_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET", "REPEATED", "SKIPPED", "FROM", "TO", "NOTE")
_NUMBERS = _COLUMNS[2:7]

Execute = Annotated[bool, typer.Option("--execute", help="Make the changes. Without it, they are only shown.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With --execute: do not ask for confirmation.")]
SparkCheckpoint = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder of the pipelines' checkpoints, if `penstock run` used --checkpoint."),
]
NewGroup = Annotated[bool, typer.Option("--new-group", help="Create the group if it does not exist.")]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All consumer groups.")]


def register(app: typer.Typer) -> None:
    offsets = typer.Typer(help="A group's committed offsets: reset, undo, export, import.", no_args_is_help=True)
    offsets.command("reset", epilog=_RESET_EXAMPLES)(reset)
    offsets.command("undo", epilog=_UNDO_EXAMPLES)(undo)
    offsets.command("export", epilog=_EXPORT_EXAMPLES)(export)
    offsets.command("import", epilog=_EXPORT_EXAMPLES)(import_)
    app.add_typer(offsets, name="offsets", rich_help_panel=PANEL)


def reset(
    groups: OptionalGroupNames = None,
    *,
    all_groups: AllGroups = False,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC[:0,2]", help="This topic, or some of its partitions. Repeatable."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All partitions that the group has committed.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the start of the log.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of the log.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To the committed offset, or to the end without one.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option(metavar="N", help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option(metavar="N", help="N records forward, or back if N is negative.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="To the first record at or after this time: 2030-01-31T12:00:00, in UTC."),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="To this long ago: 2h, or P1DT2H as in Java.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="To the offsets in a CSV file, as `export` writes it.")
    ] = None,
    checkpoint: SparkCheckpoint = None,
    new_group: NewGroup = False,
    execute: Execute = False,
    yes: Yes = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Reset the offsets of groups that have no members. Without --execute, only show the changes.

    If pipelines of the group ran on this machine, their checkpoints are moved aside.
    The offset map of a Penstock group is cleared.
    For a share group, this sets the start offsets of its partitions.
    """
    scenario = _scenario(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_offset=to_offset,
        shift_by=shift_by,
        to_datetime=to_datetime,
        by_duration=by_duration,
        from_file=from_file,
    )
    if scenario is not None and bool(topics) == all_topics:
        raise ConfigError(
            "Name topics with --topic, or use --all-topics, but not both.",
            hint="`penstock topics ls` lists the topics.",
        )
    if from_file is not None and (topics or all_topics):
        raise ConfigError(
            "--from-file cannot be combined with --topic or --all-topics: the file names its topics.",
            hint="Leave out --topic and --all-topics.",
        )
    scope = parse_scope(topics) if topics else None
    cluster = connect(brokers, config, settings)
    names = _names(cluster, groups, all_groups=all_groups)
    offsets = Offsets(cluster, checkpoint=checkpoint)
    reason = "reset"
    if scenario is None:
        plan = offsets.plan_import(_from_file(from_file or Path(), names), reason=reason, new_group=new_group)
    else:
        plan = offsets.plan_reset(names, scope, scenario, reason=reason, new_group=new_group)
    _act(offsets, plan, execute=execute, yes=yes, as_json=as_json)


def undo(
    group: GroupName,
    *,
    checkpoint: SparkCheckpoint = None,
    execute: Execute = False,
    yes: Yes = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Restore a group's offsets from before the last `reset` or `import` on this machine."""
    offsets = Offsets(connect(brokers, config, settings), checkpoint=checkpoint)
    plan, backup = offsets.plan_undo(group)
    _act(offsets, plan, execute=execute, yes=yes, as_json=as_json, undoing=backup)


def export(
    groups: OptionalGroupNames = None,
    *,
    all_groups: AllGroups = False,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC[:0,2]", help="Only this topic, or some of its partitions. Repeatable."),
    ] = None,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Print the committed offsets of groups as CSV, in the format of kafka-consumer-groups.sh."""
    scope = parse_scope(topics).topics if topics else None
    cluster = connect(brokers, config, settings)
    names = _names(cluster, groups, all_groups=all_groups)
    found: Plan = {
        name: {
            tp: commit.offset
            for tp, commit in commits.items()
            if scope is None or (tp[0] in scope and (scope[tp[0]] is None or tp[1] in (scope[tp[0]] or ())))
        }
        for name, commits in Offsets(cluster).committed(names).items()
    }
    if not any(found.values()):
        raise StateError(f"Nothing is committed for {', '.join(names)}.", hint="`penstock groups ls` lists the groups.")
    if as_json:
        rows = [
            {"group": name, "topic": topic, "partition": partition, "offset": offset}
            for name, offsets in found.items()
            for (topic, partition), offset in sorted(offsets.items())
        ]
        print_json({"offsets": rows})
    else:
        print_file(write_offsets(found))


def import_(
    group: GroupName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV from `export`, or from kafka-consumer-groups.sh.")],
    *,
    checkpoint: SparkCheckpoint = None,
    new_group: NewGroup = False,
    execute: Execute = False,
    yes: Yes = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Set a group's offsets to those in a CSV file. Without --execute, only show the changes."""
    wanted = _from_file(file, [group])
    offsets = Offsets(connect(brokers, config, settings), checkpoint=checkpoint)
    plan = offsets.plan_import(wanted, reason="import", new_group=new_group)
    _act(offsets, plan, execute=execute, yes=yes, as_json=as_json)


def _scenario(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: Path | None,
) -> Scenario | None:
    """Return the scenario that the flags name; None means ``--from-file``."""
    chosen: list[Scenario | None] = [
        Scenario(to)
        for to, asked in ((To.EARLIEST, to_earliest), (To.LATEST, to_latest), (To.CURRENT, to_current))
        if asked
    ]
    if to_offset is not None:
        chosen.append(Scenario(To.OFFSET, to_offset))
    if shift_by is not None:
        chosen.append(Scenario(To.SHIFT, shift_by))
    if to_datetime is not None:
        chosen.append(Scenario(To.TIME, round(moment(to_datetime, name="--to-datetime") * 1000)))
    if by_duration is not None:
        chosen.append(Scenario(To.TIME, round((time.time() - span(by_duration, name="--by-duration")) * 1000)))
    if from_file is not None:
        chosen.append(None)
    if len(chosen) != 1:
        raise ConfigError(
            "No target was given." if not chosen else "More than one target was given.",
            hint="Use one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, "
            "--by-duration and --from-file.",
        )
    return chosen[0]


def _names(cluster: Cluster, groups: Sequence[str] | None, *, all_groups: bool) -> list[str]:
    if bool(groups) == all_groups:
        raise ConfigError("Name groups, or use --all-groups, but not both.", hint="`penstock groups ls` lists them.")
    return list(dict.fromkeys(groups)) if groups else [each.name for each in Groups(cluster).of_consumers()]


def _from_file(file: Path, names: Sequence[str]) -> Plan:
    try:
        text = file.read_bytes().decode()  # without newline translation: names may contain carriage returns
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"{file} cannot be read: {reason.lower()}.", hint="Name a CSV file of offsets.") from error
    plan = read_offsets(text, groups=names, name=str(file))
    for name in names:
        if name not in plan:
            raise ConfigError(f"{file} has no offsets of group {name!r}.", hint=f"It has offsets of {', '.join(plan)}.")
    return {name: plan[name] for name in names}


def _act(
    offsets: Offsets, plan: ResetPlan, *, execute: bool, yes: bool, as_json: bool, undoing: OffsetBackup | None = None
) -> None:
    """Show the plan, and carry it out with ``--execute``."""
    if not as_json:
        _show(plan)
    backups: list[OffsetBackup] = []
    if execute:
        confirm(f"Set {counted(len(plan.moves), 'offset')} of {', '.join(plan.groups)}?", yes=yes)
        backups = offsets.carry_out(plan, undoing=undoing)
    if as_json:
        print_json(_as_json(plan, backups, executed=execute))
    elif not execute:
        err.print("Nothing was changed. Add --execute to make these changes.", style="bold")
    elif undoing is None:
        out.print("Done. `penstock offsets undo GROUP` restores the old offsets.", markup=False)
    else:
        out.print("Done. The old offsets are restored.", markup=False)


def _show(plan: ResetPlan) -> None:
    print_table(_COLUMNS, [_row(move) for move in plan.moves], right=_NUMBERS)
    repeated = sum(move.effect.repeated for move in plan.moves)
    skipped = sum(move.effect.skipped for move in plan.moves)
    if repeated or skipped:
        err.print(f"Repeated: {at_most(repeated, 'record')}. Skipped: {at_most(skipped, 'record')}.", markup=False)
    for name, checkpoints in plan.checkpoints.items():
        for each in checkpoints:
            err.print(f"The Spark checkpoint of {name} is moved aside too: {each.folder}", markup=False, soft_wrap=True)
    for warning in plan.warnings:
        err.print(warning, style="yellow", markup=False, soft_wrap=True)


def _row(move: OffsetMove) -> tuple[object, ...]:
    first, last = move.span or (None, None)
    return (
        move.group,
        *move.tp,
        None if move.old is None else move.old.offset,
        None if move.new is None else move.new.offset,
        move.effect.repeated,
        move.effect.skipped,
        shown_moment(first),
        shown_moment(last),
        move.note,
    )


def _as_json(plan: ResetPlan, backups: Sequence[OffsetBackup], *, executed: bool) -> dict[str, Any]:
    return {
        "executed": executed,
        "moves": [
            {
                "group": move.group,
                "topic": move.tp[0],
                "partition": move.tp[1],
                "old": None if move.old is None else move.old.offset,
                "new": None if move.new is None else move.new.offset,
                "repeated": move.effect.repeated,
                "skipped": move.effect.skipped,
                "from": None if move.span is None else move.span[0],
                "to": None if move.span is None else move.span[1],
                "note": move.note,
            }
            for move in plan.moves
        ],
        "checkpoints": {name: [str(each.folder) for each in found] for name, found in plan.checkpoints.items()},
        "warnings": list(plan.warnings),
        "saved": [str(each.path) for each in backups],
    }
