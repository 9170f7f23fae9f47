"""The tables of groups: offsets, members and state, with the columns of Kafka's tools and a few more."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.cli.commands.lag import status_text
from penstock.cli.console.screen import err, print_json
from penstock.cli.console.tables import duration, partitions_text, print_table, rate
from penstock.errors import PenstockError
from penstock.kafka.admin.consumer_groups import GroupDescription
from penstock.ops.group_lag import GroupLag, PartitionLag

_PLACE = ("GROUP", "TOPIC", "PARTITION")
_OFFSETS = (
    *_PLACE, "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID",
    "LAG-TIME", "ABOVE", "LOST", "IN", "OUT", "DRAINED-IN", "LAST-COMMIT", "STATUS",
)  # fmt: skip
_SHARE_OFFSETS = (*_PLACE, "START-OFFSET", "LAG", "LOG-END-OFFSET", "LAG-TIME", "IN", "STATUS")
_MEMBERS = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "INSTANCE-ID", "RACK", "#PARTITIONS", "ASSIGNMENT", "TARGET")
_STATE = {
    "group": "GROUP",
    "coordinator": "COORDINATOR (ID)",
    "assignor": "ASSIGNMENT-STRATEGY",
    "type": "TYPE",
    "state": "STATE",
    "epoch": "EPOCH",
    "assignment_epoch": "ASSIGNMENT-EPOCH",
    "members": "#MEMBERS",
}
_NUMBERS = (
    "PARTITION", "CURRENT-OFFSET", "START-OFFSET", "LOG-END-OFFSET", "LAG", "LAG-TIME", "ABOVE", "LOST", "IN", "OUT",
    "DRAINED-IN", "LAST-COMMIT", "#PARTITIONS", "#MEMBERS", "EPOCH", "ASSIGNMENT-EPOCH",
)  # fmt: skip


def show_offsets(found: Mapping[str, GroupLag | PenstockError]) -> None:
    for name, each in found.items():
        if isinstance(each, PenstockError):
            err.print(f"{name}: {each.problem}", style="yellow", markup=False)
        elif not each.group.members:
            _say_empty(name)
    known = [each for each in found.values() if isinstance(each, GroupLag)]
    owned = [
        _offset_row(each.group.name, part) for each in known if not each.group.is_shared for part in each.partitions
    ]
    shared = [_share_row(each.group.name, part) for each in known if each.group.is_shared for part in each.partitions]
    if owned:
        print_table(_OFFSETS, owned, right=_NUMBERS)
    if shared:
        print_table(_SHARE_OFFSETS, shared, right=_NUMBERS)
    for part in (part for each in known for part in each.partitions if part.error):
        err.print(f"{part.topic}-{part.partition}: {part.error}", style="yellow", markup=False)


def _offset_row(name: str, each: PartitionLag) -> tuple[object, ...]:
    member = each.member
    return (
        name,
        each.topic,
        each.partition,
        each.committed,
        each.end,
        each.lag,
        member.id if member else None,
        member.host if member else None,
        member.client if member else None,
        duration(each.lag_seconds),
        each.finished_above or None,
        each.lost or None,
        rate(each.rate_in),
        rate(each.rate_out),
        duration(each.drain_seconds),
        duration(each.commit_age),
        _status(each),
    )


def _share_row(name: str, each: PartitionLag) -> tuple[object, ...]:
    return (
        name,
        each.topic,
        each.partition,
        each.committed,
        each.lag,
        each.end,
        duration(each.lag_seconds),
        rate(each.rate_in),
        _status(each),
    )


def _status(each: PartitionLag) -> object:
    return "ERROR" if each.error else status_text(each.verdict.status)


def show_members(
    described: Mapping[str, GroupDescription], racks: Mapping[str, Mapping[str, str | None]], *, as_json: bool
) -> None:
    """``racks`` has the rack of each member, by group and member id."""
    if as_json:
        print_json({"groups": [_members_json(each, racks[name]) for name, each in described.items()]})
        return
    rows = []
    for name, each in described.items():
        if not each.members:
            _say_empty(name)
        for member in each.members:
            target = "same" if member.target == member.partitions else partitions_text(member.target)
            who = (name, member.id, member.host, member.client, member.static_id, racks[name].get(member.id))
            rows.append((*who, len(member.partitions), partitions_text(member.partitions), target))
    if rows:
        print_table(_MEMBERS, rows, right=_NUMBERS)


def _members_json(each: GroupDescription, racks: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "group": each.name,
        "state": each.state,
        "members": [
            {
                "id": member.id,
                "host": member.host,
                "client": member.client,
                "instance": member.static_id,
                "rack": racks.get(member.id),
                "assignment": [list(tp) for tp in member.partitions],
                "target": [list(tp) for tp in member.target],
            }
            for member in each.members
        ],
    }


def show_state(described: Iterable[GroupDescription], *, as_json: bool) -> None:
    rows = [_state_row(each) for each in described]
    if as_json:
        print_json({"groups": [dict(zip(_STATE, row, strict=True)) for row in rows]})
    else:
        print_table(tuple(_STATE.values()), rows, right=_NUMBERS)


def _state_row(each: GroupDescription) -> tuple[object, ...]:
    where = (each.name, each.coordinator, each.assignor, each.type, each.state)
    return (*where, each.epoch, each.assignment_epoch, len(each.members))


def _say_empty(name: str) -> None:
    err.print(f"Group {name!r} has no active members.", style="dim", markup=False)
