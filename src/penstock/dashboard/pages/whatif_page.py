"""What an assignor would do to a group, before anything happens: ``penstock plan`` as a page."""

import shlex
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

from penstock.assign import ASSIGNORS, Group
from penstock.assign.member_labels import labels
from penstock.assign.plan import Plan
from penstock.assign.plan_json import write_plan
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext, Publish, Rows
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.errors import ConfigError
from penstock.ops.group_plans import PlannedGroup, changed_group, look_to_plan, planning_assignor
from penstock.ops.groups_of_any_kind import all_groups

# A group is looked at again after this time, or when the page asks for it: each change of a plan would else wait.
_FRESH_SECONDS = 30.0
_MOST_MEMBERS = 2_000
_MOST_PARTITIONS = 20_000
_MOST_DIGITS = 9
# Up to so many members times partitions, all assignors are compared.
_COMPARED_CELLS = 100_000
_MOST_NAMES = 5_000


class _Looks:
    """What was read about groups in the last seconds, for each connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: WeakKeyDictionary[ClusterConnection, dict[str, tuple[float, PlannedGroup]]] = WeakKeyDictionary()

    def look(self, connection: ClusterConnection, name: str, *, again: bool) -> tuple[float, PlannedGroup]:
        """Return the group, and the time when it was read."""
        with self._lock:
            known = self._found.setdefault(connection, {})
            if again or name not in known or time.time() - known[name][0] > _FRESH_SECONDS:
                known[name] = time.time(), look_to_plan(connection.cluster(), name)
            return known[name]


_looks = _Looks()


class PlannableSource:
    """Rows: the groups that can be planned for, by name; and ``assignors``, those that Penstock knows."""

    every = 5.0

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    def read(self, publish: Publish, visible: frozenset[str]) -> None:  # noqa: ARG002 - they are names only
        listed, _ = all_groups(self._context.connection.cluster())
        names = [each.name for each in listed if each.type != "Share"]
        rows: Rows = {f"group {name}": {"group": name} for name in names[:_MOST_NAMES]}
        publish({"assignors": {"assignors": list(ASSIGNORS)}, **rows})

    def close(self) -> None: ...


def _groups(context: DashboardContext, _given: Mapping[str, str]) -> PlannableSource:
    return PlannableSource(context)


def _plan(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("There is no group to plan for.", hint="Choose a group.")
    members, partitions = _members(given), _partitions(given)
    by = str(given.get("by") or "lag")
    at, asked = _looks.look(context.connection, name, again=bool(given.get("again")))
    if not asked.group.members and not members:
        return {"at": at, "empty": True, "topics": _topics(asked.group, asked.group)}
    _refuse_too_many(asked.group, members, partitions)
    changed = changed_group(asked.group, name, members=members, partitions=partitions, topics=())
    chosen = str(given.get("assignor") or asked.assignor)
    made = asked.plan(planning_assignor(chosen, by), changed)
    return {
        "at": at,
        "own": asked.assignor,
        "notes": list(asked.notes),
        "plan": write_plan(made),
        "others": _others(asked, changed, made, by),
        "labels": {**labels(asked.group), **labels(changed)},
        "racks": {member.id: member.rack for member in changed.members if member.rack is not None},
        "topics": _topics(asked.group, changed),
        "command": plan_command_line(
            name,
            brokers=context.connection.brokers,
            assignor=None if chosen == asked.assignor else chosen,
            by=by if chosen == "lag-balanced" and by != "lag" else None,
            members=members,
            partitions=partitions,
        ),
    }


def _members(given: Mapping[str, Any]) -> list[str]:
    members = given.get("members") or []
    if not isinstance(members, list) or not all(isinstance(each, str) for each in members):
        raise ConfigError("members is no list of changes.", hint='Write them as in ["+2", "-NAME"].')
    return members


def _partitions(given: Mapping[str, Any]) -> dict[str, int]:
    partitions = given.get("partitions") or {}
    if not isinstance(partitions, dict) or not all(type(count) is int for count in partitions.values()):
        raise ConfigError("partitions has no numbers by topic.", hint='Write them as in {"orders": 12}.')
    return partitions


def _refuse_too_many(group: Group, members: list[str], partitions: Mapping[str, int]) -> None:
    """Refuse what would keep the server busy for minutes."""
    numbers = [each[1:] for each in members if each[:1] in {"+", "="} and each[1:].isdecimal()]
    added = sum(int(each) if len(each) <= _MOST_DIGITS else _MOST_MEMBERS + 1 for each in numbers)
    if len(group.members) + added > _MOST_MEMBERS:
        raise ConfigError(f"The page plans for at most {_MOST_MEMBERS:,} members.", hint="Use `penstock plan`.")
    if sum(max(0, count) for count in partitions.values()) > _MOST_PARTITIONS:
        raise ConfigError(f"The page plans for at most {_MOST_PARTITIONS:,} partitions.", hint="Use `penstock plan`.")


def _topics(before: Group, after: Group) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "before": before.topics[name].partitions if name in before.topics else 0,
            "after": topic.partitions,
        }
        for name, topic in sorted(after.topics.items())
    ]


def _others(asked: PlannedGroup, changed: Group, made: Plan, by: str) -> list[dict[str, Any]]:
    cells = len(changed.members) * sum(topic.partitions for topic in changed.topics.values())
    names = list(ASSIGNORS) if cells <= _COMPARED_CELLS else [made.assignor]
    plans = [made if name == made.assignor else asked.plan(planning_assignor(name, by), changed) for name in names]
    return [
        {
            "assignor": each.assignor,
            "moves": len(each.moves),
            "beyond": each.beyond_need,
            "spread": asdict(each.after.spread),
            "lag": asdict(each.after.lag),
            "far": each.after.far,
            "eager": asdict(each.eager),
            "cooperative": asdict(each.cooperative),
        }
        for each in plans
    ]


def plan_command_line(
    name: str,
    *,
    brokers: str | None,
    assignor: str | None,
    by: str | None,
    members: list[str],
    partitions: Mapping[str, int],
) -> str:
    """Return the command that shows the same plan, quoted for a shell."""
    words = ["penstock", "plan"]
    words += [] if name.startswith("-") else [name]
    words += ["--assignor", assignor] if assignor else []
    words += ["--by", by] if by else []
    words += [word for change in members for word in ("--members", change)]
    words += [word for topic, count in partitions.items() for word in ("--partitions", f"{topic}={count}")]
    words += ["--brokers", brokers] if brokers else []
    words += ["--", name] if name.startswith("-") else []
    return shlex.join(words)


PAGE = DashboardPage(
    "whatif",
    "What if",
    icon="whatif",
    sources={"plannable": _groups},
    endpoints=(Endpoint("plan", _plan, posts=True),),
    has_style=True,
)
