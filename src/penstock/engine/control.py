"""What a running app answers, on the threads of those who ask."""

from collections.abc import Mapping, Sequence

from penstock.app import PartitionProgress
from penstock.core.record import TopicPartition
from penstock.engine.member import Member
from penstock.engine.messages import Owned
from penstock.engine.share import ShareMember
from penstock.errors import ConfigError, StateError
from penstock.kafka import Cluster


class RunningApp:
    """The members of an app, and the cluster to ask for the ends of partitions."""

    def __init__(self, members: Sequence[Member | ShareMember], cluster: Cluster) -> None:
        self._members = members
        self._cluster = cluster

    def progress(self) -> list[PartitionProgress]:
        owned = [(member, member.survey()) for member in self._members]
        ends = self._cluster.end_offsets({place for _, places in owned for place in places})
        return [
            _progress(member, place, state, ends[place])
            for member, places in owned
            for place, state in sorted(places.items())
        ]

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        owned = [(member, member.survey()) for member in self._members]
        asked: list[tuple[Member | ShareMember, dict[TopicPartition, int]]] = []
        for member, places in owned:
            mine = {place: offset for place, offset in offsets.items() if place in places}
            if mine and member.handler.commit != "manual":
                raise ConfigError(
                    f"Handler {member.handler.name} commits by itself what it has finished.",
                    hint='To commit by hand, declare it with commit="manual".',
                )
            asked.append((member, mine))
        strangers = offsets.keys() - {place for _, mine in asked for place in mine}
        if strangers:
            topic, partition = min(strangers)
            raise StateError(
                f"{topic}[{partition}] is not owned by this process now, so it cannot be committed here.",
                hint="It may have moved to another member, which will get its uncommitted records again.",
            )
        # Nothing is acknowledged before everything is known to be in order.
        for member, mine in asked:
            if mine:
                member.ack_below(mine)


def _progress(member: Member | ShareMember, place: TopicPartition, state: Owned, end: int) -> PartitionProgress:
    topic, partition = place
    done = state.position if state.committed is None else state.committed
    return PartitionProgress(
        handler=member.handler.name,
        group=member.handler.group,
        topic=topic,
        partition=partition,
        position=state.position,
        committed=state.committed,
        end=end,
        lag=None if done is None else max(0, end - done),
        in_flight=state.in_flight,
    )
