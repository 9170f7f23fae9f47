"""The group leader's task: read the members' subscriptions and compute the assignment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.assign import Assignment, Assignor, Group, Topic, faults
from penstock.assign.cooperative import cooperates, withhold
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import GroupSnapshot, RebalanceMember
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.group.coordinator import Joined
from penstock.kafka.group.subscription_format import PenstockData, read_subscription, write_assignment


@dataclass(frozen=True, slots=True)
class LeaderDecision:
    """The leader's assignment: encoded for the coordinator, and with the reasons for rebalance reports."""

    assignments: Mapping[str, bytes]
    voters: tuple[RebalanceMember, ...]
    view: GroupSnapshot


class Leader:
    """Runs the assignor. It connects to the cluster only for assignors that need the lag of partitions."""

    def __init__(self, group: str, connect: Callable[[], Cluster]) -> None:
        self._group = group
        self._connect = connect

    def assign(self, joined: Joined, assignor: Assignor, topics: Mapping[str, Topic]) -> LeaderDecision:
        read = [read_subscription(info) for info in joined.members]
        if getattr(assignor, "needs_lag", False):
            topics = self._with_lag(topics)
        group = Group(tuple(member for member, _ in read), topics)
        assignment = _run_assignor(assignor, group)
        if cooperates(assignor):
            assignment = withhold(group, assignment)
        return LeaderDecision(
            {member: write_assignment(tps) for member, tps in assignment.partitions.items()},
            _voters(group, [penstock_data for _, penstock_data in read], assignment),
            GroupSnapshot(
                frozenset(member.id for member in group.members),
                {member.id: frozenset(member.topics) for member in group.members},
                {name: topic.partitions for name, topic in topics.items()},
                bool(assignment.pending),
            ),
        )

    def _with_lag(self, topics: Mapping[str, Topic]) -> dict[str, Topic]:
        """Add the lag. If it cannot be read, leave it out: the assignor then balances partition counts."""
        tps = [(name, number) for name, topic in topics.items() for number in range(topic.partitions)]
        try:
            lags = _lags(self._connect(), self._group, tps)
        except PenstockError:
            return dict(topics)
        return {
            name: replace(topic, lag=tuple(lags[name, number] for number in range(topic.partitions)))
            for name, topic in topics.items()
        }


def subscribed_topics(joined: Joined) -> set[str]:
    return {topic for info in joined.members for topic in read_subscription(info)[0].topics}


def _run_assignor(assignor: Assignor, group: Group) -> Assignment:
    """Run the assignor and raise a ConfigError if its assignment is not valid."""
    try:
        answer = assignor.assign(group)
        wrong = faults(group, answer)
    except Exception as error:
        raise _assignor_error(assignor, f"raised {type(error).__name__}: {error}") from error
    if wrong:
        raise _assignor_error(assignor, f"returned an invalid assignment: {'; '.join(wrong[:3])}")
    return answer


def _assignor_error(assignor: Assignor, what: str) -> ConfigError:
    return ConfigError(
        f"Assignor {assignor.name!r} {what}.",
        hint="Nothing was assigned. Fix the assignor and test it with penstock.testing.check_assignor.",
    )


def _lags(cluster: Cluster, group: str, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    ends, starts, committed = (
        cluster.end_offsets(tps),
        cluster.start_offsets(tps),
        cluster.committed(group, tps),
    )
    return {tp: max(0, ends[tp] - max(starts[tp], committed.get(tp, 0))) for tp in tps}


def _voters(
    group: Group, penstock_data_of: Iterable[PenstockData | None], assignment: Assignment
) -> tuple[RebalanceMember, ...]:
    return tuple(
        RebalanceMember(
            id=member.id,
            static_id=member.static_id,
            rack=member.rack,
            topics=member.topics,
            votes=None if penstock_data is None else penstock_data.votes,
            owned=len(member.owned),
            assigned=len(assignment.partitions[member.id]),
        )
        for member, penstock_data in zip(group.members, penstock_data_of, strict=True)
    )
