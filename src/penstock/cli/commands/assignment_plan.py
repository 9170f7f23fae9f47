"""``penstock plan``: shows what an assignor would do to a group, without doing it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from penstock.assign import Group
from penstock.assign.member_labels import labels
from penstock.assign.plan_json import read_group, write_group, write_plan
from penstock.assign.plan_svg import picture
from penstock.cli.commands.lag import PANEL
from penstock.cli.console.completion import complete_groups
from penstock.cli.console.confirm import confirm_replacing
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.plan_tables import show_figures, show_plan
from penstock.cli.console.screen import err, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.core.text.durations import seconds
from penstock.errors import ConfigError
from penstock.ops.group_plans import PlannedGroup, changed_group, look_to_plan, planning_assignor

_EXAMPLES = """
[bold]Examples[/]

  penstock plan shipping --members +2                       with two more members
  penstock plan shipping --members -consumer-3 --svg a.svg  without one member, drawn as SVG
  penstock plan shipping --compare range,sticky,lag-balanced
  penstock plan shipping --save group.json                  save the group as it is now
  penstock plan group.json --partitions orders=24           plan with the saved group, without Kafka
"""


def register(app: typer.Typer) -> None:
    app.command("plan", epilog=_EXAMPLES, rich_help_panel=PANEL)(plan_command)


def plan_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="GROUP", help="A group of the cluster, or a JSON file from --save.", autocompletion=complete_groups
        ),
    ],
    *,
    assignor: Annotated[
        str | None, typer.Option("--assignor", help="The assignor. Default: the one that the group uses.")
    ] = None,
    compare: Annotated[str, typer.Option("--compare", help="Compare these assignors, separated by commas.")] = "",
    by: Annotated[str, typer.Option("--by", help="What lag-balanced balances: lag, rate or cost.")] = "lag",
    members: Annotated[
        list[str] | None, typer.Option("--members", help="Change the members: +2, -NAME or =8. Repeatable.")
    ] = None,
    partitions: Annotated[
        list[str] | None, typer.Option("--partitions", help="Change the partitions of a topic: TOPIC=24. Repeatable.")
    ] = None,
    topics: Annotated[
        list[str] | None, typer.Option("--topics", help="Add or remove a topic: +NAME or -NAME. Repeatable.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Measure rates for this time. Default: the rates of the last minute, by the records' timestamps.",
        ),
    ] = None,
    heartbeat: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="The members' heartbeat interval, in which they notice a rebalance. Default: 3s, or 5s with the "
            "consumer protocol (KIP-848).",
        ),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the group before and after as SVG.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Save the group as JSON, to plan later without Kafka.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace existing files without asking.")] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show which partitions a rebalance would move, how even the result would be, and what would pause."""
    watch = None if measure is None else seconds(measure, name="--measure")
    counts = dict(_count(text) for text in partitions or [])
    confirm_replacing([file for file in (save, svg) if file is not None], yes=yes)
    if _is_file(name):
        asked = PlannedGroup(_read(Path(name)))
    else:
        cluster = connect(brokers, config, settings)
        asked = look_to_plan(
            cluster, name, topics=[text[1:] for text in topics or [] if text[:1] == "+"], measure=watch
        )
    if save is not None:
        _write(save, json.dumps(write_group(asked.group), indent=2, ensure_ascii=False) + "\n")
    changed = changed_group(asked.group, name, members=members or [], partitions=counts, topics=topics or [])
    pause = None if heartbeat is None else seconds(heartbeat, name="--heartbeat")
    chosen = compare.split(",") if compare else [assignor or asked.assignor]
    plans = [asked.plan(planning_assignor(each.strip(), by), changed, heartbeat=pause) for each in chosen]
    names = {**labels(asked.group), **labels(changed)}
    if svg is not None:
        said = {"members": members, "topics": topics, "partitions": partitions}
        what = ", ".join(f"{which} {' '.join(changes)}" for which, changes in said.items() if changes)
        title = f"{Path(name).stem if _is_file(name) else name}: {what or 'unchanged'}"
        doubt = " (an estimate)" if any(made.estimate for made in plans) else ""
        _write(svg, picture(title + doubt, plans, names))
    if as_json:
        print_json({"group": name, "notes": list(asked.notes), "plans": [write_plan(made) for made in plans]})
        return
    _tell(asked.notes)
    if not compare:
        show_plan(plans[0], names)
    show_figures(plans)
    _tell(dict.fromkeys(f"This is an estimate: {made.estimate}." for made in plans if made.estimate))


def _is_file(name: str) -> bool:
    return name.endswith(".json") or Path(name).is_file()


def _read(file: Path) -> Group:
    try:
        return read_group(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.", hint="Name a file that --save has written.") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file} is not JSON: {error}.", hint="docs/assignment.md describes the format.") from error


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error}.", hint="Name a file in a folder that you can write to."
        ) from error


def _count(text: str) -> tuple[str, int]:
    topic, _, count = text.partition("=")
    if not topic or not count.isdecimal():
        raise ConfigError(f"--partitions {text} is not TOPIC=NUMBER.", hint="Write it like orders=24.")
    return topic, int(count)


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        err.print(note, style="yellow", markup=False, soft_wrap=True)
