"""The leader's part: from the coordinator's list of members to what each of them gets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.assign import Assignment, Assignor, Group, Topic, faults
from penstock.assign.cooperative import cooperates, withhold
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import GroupSnapshot, RebalanceMember
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.group.coordinator import Joined
from penstock.kafka.group.subscription_format import Ballot, read_subscription, write_assignment


@dataclass(frozen=True, slots=True)
class Division:
    """What the leader has decided, as the coordinator takes it, and as people want to read it."""

    assignments: Mapping[str, bytes]
    voters: tuple[RebalanceMember, ...]
    view: GroupSnapshot


class Leader:
    """The cluster knows how much waits in partitions, for assignors that ask; so it is connected to only for them."""

    def __init__(self, group: str, connect: Callable[[], Cluster]) -> None:
        self._group = group
        self._connect = connect

    def divide(self, joined: Joined, assignor: Assignor, topics: Mapping[str, Topic]) -> Division:
        read = [read_subscription(seat) for seat in joined.members]
        if getattr(assignor, "needs_lag", False):
            topics = self._with_lag(topics)
        group = Group(tuple(member for member, _ in read), topics)
        assignment = _asked(assignor, group)
        if cooperates(assignor):
            assignment = withhold(group, assignment)
        return Division(
            {member: write_assignment(tps) for member, tps in assignment.partitions.items()},
            _voters(group, [ballot for _, ballot in read], assignment),
            GroupSnapshot(
                frozenset(member.id for member in group.members),
                {member.id: frozenset(member.topics) for member in group.members},
                {name: topic.partitions for name, topic in topics.items()},
                bool(assignment.pending),
            ),
        )

    def _with_lag(self, topics: Mapping[str, Topic]) -> dict[str, Topic]:
        """What cannot be read is left out: a group that balances numbers is better than one that does not go on."""
        tps = [(name, number) for name, topic in topics.items() for number in range(topic.partitions)]
        try:
            lags = _lags(self._connect(), self._group, tps)
        except PenstockError:
            return dict(topics)
        return {
            name: replace(topic, lag=tuple(lags[name, number] for number in range(topic.partitions)))
            for name, topic in topics.items()
        }


def wanted_topics(joined: Joined) -> set[str]:
    return {topic for seat in joined.members for topic in read_subscription(seat)[0].topics}


def _asked(assignor: Assignor, group: Group) -> Assignment:
    """The assignor's answer; one that is not valid goes to nobody."""
    try:
        answer = assignor.assign(group)
        wrong = faults(group, answer)
    except Exception as error:
        raise _mistaken(assignor, f"raised {type(error).__name__}: {error}") from error
    if wrong:
        raise _mistaken(assignor, f"gave an answer that cannot be: {'; '.join(wrong[:3])}")
    return answer


def _mistaken(assignor: Assignor, what: str) -> ConfigError:
    return ConfigError(
        f"Assignor {assignor.name!r} {what}.",
        hint="Nothing was assigned. Mend it and try it out with penstock.testing.check_assignor.",
    )


def _lags(cluster: Cluster, group: str, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    ends, starts, committed = (
        cluster.end_offsets(tps),
        cluster.start_offsets(tps),
        cluster.committed(group, tps),
    )
    return {tp: max(0, ends[tp] - max(starts[tp], committed.get(tp, 0))) for tp in tps}


def _voters(group: Group, ballots: Iterable[Ballot | None], assignment: Assignment) -> tuple[RebalanceMember, ...]:
    return tuple(
        RebalanceMember(
            id=member.id,
            static_id=member.static_id,
            rack=member.rack,
            topics=member.topics,
            votes=None if ballot is None else ballot.votes,
            owned=len(member.owned),
            assigned=len(assignment.partitions[member.id]),
        )
        for member, ballot in zip(group.members, ballots, strict=True)
    )
