"""Plans for a group of the cluster as it is now, with changes to its members, topics and partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.assign import ASSIGNORS, Assignor, Group, LagBalanced, assignor_named
from penstock.assign.plan import HEARTBEAT_SECONDS, Plan, plan, why_estimate
from penstock.assign.what_if import with_members, with_partitions, with_topics
from penstock.errors import ConfigError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.groups_of_any_kind import no_group
from penstock.ops.live_group import look

DEFAULT_ASSIGNOR = "cooperative-sticky"
# The broker's default for members of the consumer protocol (KIP-848).
_NEW_PROTOCOL_HEARTBEAT = 5.0


@dataclass(frozen=True)
class PlannedGroup:
    """The group to plan for, its assignor and heartbeat, and notes on what is not known about it."""

    group: Group
    notes: tuple[str, ...] = ()
    assignor: str = DEFAULT_ASSIGNOR
    heartbeat: float = HEARTBEAT_SECONDS
    all_open: bool = False
    by_broker: bool = False

    def plan(self, assignor: Assignor, changed: Group, *, heartbeat: float | None = None) -> Plan:
        """Return what this assignor would do to the changed group."""
        pause = self.heartbeat if heartbeat is None else heartbeat
        made = plan(self.group, assignor, changed=changed, heartbeat=pause)
        estimate = why_estimate(assignor.name, all_open=self.all_open, by_broker=self.by_broker)
        return replace(made, estimate=estimate)


def look_to_plan(
    cluster: Cluster, name: str, *, topics: Iterable[str] = (), measure: float | None = None
) -> PlannedGroup:
    """Return the group as it is now. ``topics`` are more topics to read about; for ``measure`` see ``live_group``."""
    topics = list(topics)
    live = look(cluster, name, topics=topics, measure=measure)
    if not live.description.exists:
        raise no_group(name, cluster)
    notes = [*live.notes]
    notes += [
        f"Topic {topic!r} does not exist. Give its number of partitions with --partitions {topic}=12."
        for topic in topics
        if topic not in live.group.topics
    ]
    own, new = live.description.assignor, live.description.type == "Consumer"
    if live.group.members and (new or own not in ASSIGNORS):
        where = "runs in the broker" if new else "is unknown to Penstock"
        notes.append(
            f"The group's assignor ({own or 'unknown'}) {where}. This plan uses {DEFAULT_ASSIGNOR}; choose with "
            "--assignor."
        )
        own = DEFAULT_ASSIGNOR
    heartbeat = _NEW_PROTOCOL_HEARTBEAT if new else HEARTBEAT_SECONDS
    return PlannedGroup(
        live.group, tuple(notes), own or DEFAULT_ASSIGNOR, heartbeat, all_open=live.all_open, by_broker=new
    )


def changed_group(
    group: Group, name: str, *, members: Iterable[str], partitions: Mapping[str, int], topics: Iterable[str]
) -> Group:
    """Return the group after these changes, in the notation of ``what_if``. Raise a ConfigError if nobody is left."""
    changed = with_partitions(with_topics(group, topics), partitions)
    for change in members:
        changed = with_members(changed, change)
    if not changed.members:
        raise ConfigError(
            f"Group {name!r} has no members, so there is nothing to plan.", hint="Add members, such as --members =3."
        )
    return changed


def planning_assignor(name: str, by: str) -> Assignor:
    """Return the assignor of this name; ``by`` is what lag-balanced balances."""
    known = assignor_named(name)
    return LagBalanced(by=by) if isinstance(known, LagBalanced) else known  # type: ignore[arg-type] # it checks
