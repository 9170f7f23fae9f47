"""How many members a group should have, for ``penstock lag --recommend``: measured from outside, at one moment.

How much a member can handle comes from the running apps of this machine, or from the commits of the group while it had
lag. The rule is that of the metric (``core/scheduling/recommended_members.py``), which measures for longer.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from penstock.core.scheduling.member_throughput import PartitionRates, throughput_of_a_member
from penstock.core.scheduling.recommended_members import GroupLoad, needed_now
from penstock.errors import PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.group_lag import GroupLag, PartitionLag, survey
from penstock.ops.groups_of_any_kind import no_group
from penstock.ops.run_socket import MeasuredMember, ask_run
from penstock.ops.runs import alive

_ANSWER_SECONDS = 5.0
# From so many records on, the mean of the last moment counts, and not that of the whole run.
_ENOUGH_RECORDS = 100


@dataclass(frozen=True)
class HandlerMeasured:
    """What the members of one handler on this machine have measured together."""

    topics: frozenset[str]
    members: int
    service_seconds: float
    concurrency: int
    one_per_partition: bool


@dataclass(frozen=True)
class Recommendation:
    """For the members that share topics: all of the group, unless it has several handlers.

    ``measured`` is None if the throughput of a member comes from the commits, or is not known; then the load has no
    service time.
    """

    topics: tuple[str, ...]
    load: GroupLoad
    measured: HandlerMeasured | None

    @property
    def recommended(self) -> int | None:
        return needed_now(self.load) if self.load.service_seconds else None

    @property
    def rate_of_a_member(self) -> float | None:
        """How many records a second a member can handle."""
        return self.load.concurrency / self.load.service_seconds if self.load.service_seconds else None


def recommend(cluster: Cluster, name: str, *, now: float, window: float) -> list[Recommendation]:
    """Return the recommendation for each handler of the group. Raises if what it needs is not known."""
    if alive(name, engine="spark"):
        raise StateError(
            f"{name} runs on Spark, where the executors do the work and not the members.",
            hint="Give Spark more executors, or dynamic allocation.",
        )
    before = measured_here(name)
    group = survey(cluster, [name], now=now, window=window)[name]
    if isinstance(group, PenstockError):
        raise group
    if not group.group.exists:
        raise no_group(name, cluster)
    if group.group.is_shared:
        raise StateError(
            f"{name} is a share group: its members share partitions, so the partitions do not limit their number.",
            hint="--recommend works with consumer groups.",
        )
    return recommendations(group, handlers_measured(before, measured_here(name)), cluster.topics())


def recommendations(
    group: GroupLag, measured: Iterable[HandlerMeasured], partition_counts: Mapping[str, int]
) -> list[Recommendation]:
    """Raise if it is not known for any topics what a member can handle."""
    measured = list(measured)
    found = [
        _recommended(group, topics, next((each for each in measured if each.topics & topics), None), partition_counts)
        for topics in _topics_by_handler(group, measured)
    ]
    if all(each.recommended is None for each in found):
        raise StateError(
            f"How much a member of {group.group.name} can handle is not known: no app of this machine has measured it, "
            "and members have committed nothing while the group had lag.",
            hint="Run this on the machine of a running app of the group (penstock run), or while the group has lag and "
            "commits.",
        )
    return found


def _topics_by_handler(group: GroupLag, measured: Iterable[HandlerMeasured]) -> list[set[str]]:
    """Return the topics of each handler: those that a member owns partitions of belong together.

    Topics without an owner count only if no topic has one: the group has committed them long ago.
    """
    owned: dict[str, set[str]] = {}
    for each in group.partitions:
        if each.member is not None:
            owned.setdefault(each.member.id, set()).add(each.topic)
    everything = {topic for topics in owned.values() for topic in topics}
    sets = [*owned.values(), *(everything & each.topics for each in measured)]
    if not everything:
        sets = [{each.topic for each in group.partitions}]
    joined: list[set[str]] = []
    for topics in filter(None, sets):
        apart = [each for each in joined if not each & topics]
        joined = [*apart, topics.union(*(each for each in joined if each & topics))]
    return sorted(joined, key=sorted)


def _recommended(
    group: GroupLag, topics: set[str], measured: HandlerMeasured | None, partition_counts: Mapping[str, int]
) -> Recommendation:
    name = group.group.name
    parts = [each for each in group.partitions if each.topic in topics and each.end is not None]
    arrivals = [each.rate_in for each in parts if each.rate_in is not None]
    if not arrivals:
        raise StateError(
            f"How many records arrive for {name} is not known: its topics cannot be read, or it has none.",
            hint=f"`penstock lag {name} --partitions` shows the reason for each partition.",
        )
    if measured is None:
        throughput = throughput_of_a_member(_rates(each) for each in parts if each.member is not None)
        service_seconds, concurrency = 1 / throughput if throughput else 0.0, 1
    else:
        service_seconds, concurrency = measured.service_seconds, measured.concurrency
    partitions = max(len(parts), sum(partition_counts.get(topic, 0) for topic in topics))
    load = GroupLoad(
        rate_in=sum(arrivals) * len(parts) / len(arrivals),
        lag=_lag(parts),
        service_seconds=service_seconds,
        concurrency=concurrency,
        partitions=partitions,
        members=_members(group, topics),
        one_per_partition=measured is not None and measured.one_per_partition,
    )
    return Recommendation(tuple(sorted(topics)), load, measured)


def _lag(parts: Sequence[PartitionLag]) -> int:
    """Partitions with records and without a commit count like the others: a new group has committed only in some."""
    known = [0 if each.end == each.start else each.unfinished for each in parts]
    lags = [each for each in known if each is not None]
    return round(sum(lags) * len(parts) / len(lags)) if lags else 0


def _rates(each: PartitionLag) -> PartitionRates:
    return PartitionRates("" if each.member is None else each.member.id, each.rate_out, each.rate_behind)


def _members(group: GroupLag, topics: set[str]) -> int:
    """Count the members of these topics. Idle members count if the group has no other topics."""
    members = group.group.members
    owning = [{topic for topic, _ in each.partitions} for each in members]
    if not any(owned - topics for owned in owning):
        return len(members)
    return sum(bool(owned & topics) for owned in owning)


def handlers_measured(before: Sequence[MeasuredMember], after: Sequence[MeasuredMember]) -> list[HandlerMeasured]:
    """Put the members of each handler together, as they were at two moments. Those without records are left out.

    If there were enough records in between, their mean counts, else that of the whole run: it is steadier.
    """
    found = []
    for handler in sorted({each.handler for each in after}):
        then = [each for each in before if each.handler == handler]
        now = [each for each in after if each.handler == handler]
        records, seconds = sum(each.records for each in now), sum(each.seconds for each in now)
        if not records:
            continue
        recent = records - sum(each.records for each in then)
        if len(then) == len(now) and recent >= _ENOUGH_RECORDS:
            records, seconds = recent, seconds - sum(each.seconds for each in then)
        found.append(
            HandlerMeasured(
                frozenset(topic for each in now for topic in each.topics),
                len(now),
                seconds / records,
                max(1, sum(each.concurrency for each in now) // len(now)),
                now[0].one_per_partition,
            )
        )
    return found


def measured_here(name: str) -> list[MeasuredMember]:
    """Ask the running apps of this machine. Those that do not answer are left out, also those of an older Penstock."""
    found: list[MeasuredMember] = []
    for run in alive(name):
        with suppress(PenstockError, msgspec.MsgspecError):
            answer = ask_run(run, {"call": "measure"}, patience=_ANSWER_SECONDS)
            found += msgspec.convert(answer.get("members", []), list[MeasuredMember])
    return [each for each in found if each.group == name]
