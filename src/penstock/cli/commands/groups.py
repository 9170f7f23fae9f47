"""``penstock groups``."""

import time
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from penstock.cli.commands.groups_history import EXAMPLES, history
from penstock.cli.commands.lag import PANEL, group_json
from penstock.cli.console.completion import GroupNames, OptionalGroupNames
from penstock.cli.console.confirm import confirm
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.group_tables import show_members, show_offsets, show_state
from penstock.cli.console.screen import err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import print_table
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import SHARE, GroupDescription, Groups
from penstock.ops.group_lag import GroupLag, survey
from penstock.ops.groups_of_any_kind import all_groups, no_group
from penstock.ops.groups_of_any_kind import describe as describe_any
from penstock.ops.member_subscriptions import epochs, subscriptions

_LS_EXAMPLES = """
[bold]Examples[/]

  penstock groups ls
  penstock groups ls 'shop-*' --state Stable
  penstock groups ls --type share
  penstock groups ls --json | jq -r '.groups[].group'
"""
_DESCRIBE_EXAMPLES = """
[bold]Examples[/]

  penstock groups describe shipping               offsets, lag in records and seconds, rates
  penstock groups describe shipping --members     members and their partitions
  penstock groups describe shipping --state       coordinator, assignor, state
"""
_RM_EXAMPLES = """
[bold]Examples[/]

  penstock groups rm old-group                    asks first
  penstock groups rm old-1 old-2 --yes
"""


def register(app: typer.Typer) -> None:
    groups = typer.Typer(
        help="Consumer and share groups: list, describe, delete, history of rebalances.", no_args_is_help=True
    )
    groups.command("ls", epilog=_LS_EXAMPLES)(ls)
    groups.command("describe", epilog=_DESCRIBE_EXAMPLES)(describe)
    groups.command("rm", epilog=_RM_EXAMPLES)(rm)
    groups.command("history", epilog=EXAMPLES)(history)
    app.add_typer(groups, name="groups", rich_help_panel=PANEL)


def ls(
    pattern: Annotated[str, typer.Argument(help="Only groups with names like this; * and ? are wildcards.")] = "*",
    *,
    state: Annotated[str | None, typer.Option(help="Only groups in this state, such as Empty or Stable.")] = None,
    kind: Annotated[
        str | None, typer.Option("--type", help="Only groups of this type: classic, consumer or share.")
    ] = None,
    others: Annotated[
        bool, typer.Option("--others", help="List the groups of other kinds instead, such as Streams, by name only.")
    ] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """List the groups of a cluster with their types and states."""
    cluster = connect(brokers, config, settings)
    listed, without_shared = (Groups(cluster).others(), None) if others else all_groups(cluster)
    if without_shared is not None:
        if kind is not None and kind.lower() == SHARE.lower():
            raise without_shared
        why = without_shared.hint if isinstance(without_shared, ConfigError) else without_shared
        err.print(f"Share groups are not listed. {why}", style="dim", markup=False, soft_wrap=True)
    if not listed:
        cluster.require_sight("group")
    found = [
        each
        for each in listed
        if fnmatchcase(each.name, pattern)
        and (state is None or each.state.lower() == state.lower())
        and (kind is None or each.type.lower() == kind.lower())
    ]
    if as_json:
        print_json({"groups": [{"group": each.name, "type": each.type, "state": each.state} for each in found]})
    elif found:
        print_table(("GROUP", "TYPE", "STATE"), [(each.name, each.type, each.state) for each in found])
    else:
        err.print("No groups.")


def describe(
    groups: OptionalGroupNames = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Show every group.")] = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Show offsets and lag (the default).")] = False,
    members: Annotated[bool, typer.Option("--members", help="Show members and their partitions.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show coordinator, assignor and state.")] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show offsets, members or state of groups, with the columns of kafka-consumer-groups.sh and a few more."""
    if sum((offsets, members, state)) > 1:
        raise ConfigError("--offsets, --members and --state cannot be combined.", hint="Use only one of them.")
    if bool(groups) == everything:
        raise ConfigError("Name groups, or use --all, but not both.", hint="`penstock groups ls` lists the groups.")
    cluster = connect(brokers, config, settings)
    names = groups or [each.name for each in all_groups(cluster)[0]]
    if members or state:
        described = _described(cluster, names)
        if members:
            racks = {name: _racks(cluster, each) for name, each in described.items()}
            show_members(described, racks, as_json=as_json)
        else:
            show_state(_with_epochs(cluster, described), as_json=as_json)
        return
    found = survey(cluster, names, now=time.time())
    for name, each in found.items():
        if isinstance(each, PenstockError) and len(found) == 1:
            raise each
        if isinstance(each, GroupLag) and not each.group.exists and groups:
            raise no_group(name, cluster)
    if as_json:
        print_json({"groups": [group_json(name, each) for name, each in found.items()]})
        return
    show_offsets(found)


def rm(
    groups: GroupNames,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Delete groups with all their offsets. If one of them has members, nothing is deleted."""
    cluster = connect(brokers, config, settings)
    for name, each in _described(cluster, groups).items():
        if each.is_active:
            raise StateError(
                f"Group {name!r} is active ({each.state}), with {counted(len(each.members), 'member')}.",
                hint="Nothing was deleted. Stop its members first.",
            )
    confirm(f"Delete {', '.join(groups)} with all committed offsets?", yes=yes)
    failures = {name: error for name, error in Groups(cluster).delete(groups).items() if error is not None}
    if as_json:
        deleted = [name for name in groups if name not in failures]
        print_json({"deleted": deleted, "failed": {name: each.problem for name, each in failures.items()}})
    for failure in failures.values():
        raise failure
    if not as_json:
        out.print(f"Deleted {', '.join(groups)}.", markup=False)


def _described(cluster: Cluster, names: list[str]) -> dict[str, GroupDescription]:
    found = {}
    for name, each in describe_any(cluster, names).items():
        if isinstance(each, PenstockError):
            raise each
        if not each.exists:
            raise no_group(name, cluster)
        found[name] = each
    return found


def _racks(cluster: Cluster, group: GroupDescription) -> dict[str, str | None]:
    if group.is_shared:
        return {member.id: member.rack for member in group.members}
    return {member: each.rack for member, each in subscriptions(cluster, group).items()}


def _with_epochs(cluster: Cluster, described: dict[str, GroupDescription]) -> list[GroupDescription]:
    """Add the epochs of consumer groups, which are read from ``__consumer_offsets``."""
    found = epochs(cluster, [name for name, each in described.items() if not each.is_shared])
    return [replace(each, epoch=found.get(name, each.epoch)) for name, each in described.items()]
