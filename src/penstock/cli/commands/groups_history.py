"""``penstock groups history``: the rebalances of a group, as its members on this machine recorded them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from penstock.cli.console.completion import GroupName
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.screen import print_json, print_line
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import moment, partitions_text, print_table
from penstock.core.reports.rebalance import UNKNOWN, Handover, Rebalance, RebalanceMember
from penstock.errors import PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.groups_of_any_kind import describe as describe_any
from penstock.ops.groups_of_any_kind import no_group
from penstock.ops.rebalance_history import GroupRound, ReportedRebalance, read_history, rounds
from penstock.paths import runs_folder

EXAMPLES = """
[bold]Examples[/]

  penstock groups history shipping                the latest rebalances, newest last
  penstock groups history shipping --last 100 --json
"""
_SEVERAL = 3


def history(
    group: GroupName,
    *,
    last: Annotated[int, typer.Option(min=1, help="How many rebalances to show.")] = 10,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show a group's latest rebalances: reason, phases, leader, moved partitions and how long they had no owner.

    Each `penstock run` on this machine records its rebalances for a week.
    Members with an assignor of Penstock record all details.
    Members with an assignor of the Kafka client record what the client reports.
    Kafka keeps no history: --brokers only serves to check that the group exists.
    """
    found = rounds(read_history(runs_folder(), group))[-last:]
    if not found:
        if brokers is not None:
            _require_group(connect(brokers, config, settings), group)
        raise StateError(
            f"No run on this machine has recorded a rebalance of group {group!r}.",
            hint="Run this on the machines where its members run. `penstock stop` lists the runs on this machine.",
        )
    if as_json:
        print_json({"group": group, "rebalances": [_as_json(each) for each in found]})
        return
    for number, each in enumerate(found):
        if number:
            print_line()
        _show(each)


def _require_group(cluster: Cluster, group: str) -> None:
    """Raise, with the most similar name as a hint, if the cluster has no such group."""
    described = describe_any(cluster, [group])[group]
    if not isinstance(described, PenstockError) and not described.exists:
        raise no_group(group, cluster)


def _show(each: GroupRound) -> None:
    its = each.first.rebalance
    numbers = each.generations
    generation = "" if not numbers else f"generation {numbers[0]}"
    if len(numbers) > 1:
        generation = f"generations {numbers[0]} to {numbers[-1]}"
    known = ", ".join(part for part in (generation, its.strategy) if part)
    reason = "" if each.reason == UNKNOWN else f": {each.reason}"
    print_line(f"{moment(each.began)} {known}".rstrip() + reason)
    if its.coordinator is not None:
        print_line(f"  coordinator: {its.coordinator.explained()}")
    if its.leader is not None:
        print_line(f"  leader: {its.leader}")
    if its.members is not None:
        columns = ("  MEMBER", "INSTANCE-ID", "RACK", "VOTES", "HAD", "GETS")
        print_table(columns, [_voter_row(voter) for voter in its.members], right=columns[4:])
    rows = [_report_row(reported.member, reported.rebalance) for reported in _with_changes(each.reported)]
    print_table(("  REPORTED BY", "PHASES", "REVOKED", "ASSIGNED", "LOST"), rows)
    gaps = _gaps(each.handovers)
    if gaps:
        print_line(f"  without an owner: {gaps}")


def _with_changes(reported: Sequence[ReportedRebalance]) -> list[ReportedRebalance]:
    """Leave out generations in which nothing changed for a member, if the member has another line."""
    changed = {each.member for each in reported if _changes(each.rebalance)}
    quiet: dict[str, ReportedRebalance] = {}
    for each in reported:
        if each.member not in changed:
            quiet.setdefault(each.member, each)
    return [each for each in reported if _changes(each.rebalance) or quiet.get(each.member) is each]


def _changes(its: Rebalance) -> bool:
    return bool(its.given_up or its.taken or its.lost)


def _voter_row(voter: RebalanceMember) -> tuple[object, ...]:
    votes = None if voter.votes is None else ", ".join(voter.votes)
    return f"  {voter.id}", voter.static_id, voter.rack, votes, voter.owned, voter.assigned


def _report_row(member: str, its: Rebalance) -> tuple[object, ...]:
    phases = ", ".join(f"{phase.name} {_seconds(phase.seconds)}" for phase in its.phases)
    return (
        f"  {member} ({its.membership})",
        phases,
        partitions_text(its.given_up),
        partitions_text(its.taken),
        partitions_text(its.lost),
    )


def _gaps(handovers: Sequence[Handover]) -> str:
    known = [(each.seconds, each.tp) for each in handovers if each.seconds is not None]
    longest = [f"{topic}[{number}] {_seconds(seconds)}" for seconds, (topic, number) in sorted(known, reverse=True)]
    parts = longest[:_SEVERAL]
    parts += [f"{len(longest) - _SEVERAL} more, each shorter"] * (len(longest) > _SEVERAL)
    return ", ".join(parts)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms" if seconds < 1 else f"{seconds:.1f}s"


def _as_json(each: GroupRound) -> dict[str, Any]:
    its = each.first.rebalance
    return {
        "began": each.began,
        "reason": None if each.reason == UNKNOWN else each.reason,
        "generation": its.generation,
        "generations": list(each.generations),
        "strategy": its.strategy,
        "coordinator": None if its.coordinator is None else asdict(its.coordinator),
        "leader": its.leader,
        "members": None if its.members is None else [asdict(voter) for voter in its.members],
        "reports": [{"member": reported.member, **asdict(reported.rebalance)} for reported in each.reported],
        "without_owner": [
            {"topic": one.tp[0], "partition": one.tp[1], "owner": one.owner, "seconds": one.seconds}
            for one in each.handovers
        ],
    }
