"""What a running app answers, on the threads of those who ask."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from penstock.app import Handler, PartitionProgress
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import PartitionState
from penstock.errors import ConfigError, StateError

Ends = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]]


class AskedMember(Protocol):
    """A member of whatever kind, as far as it is asked from outside; the testing kit has its own."""

    @property
    def handler(self) -> Handler: ...
    def survey(self) -> dict[TopicPartition, PartitionState]: ...
    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class RunningApp:
    """The members of an app, and how to look up the ends of partitions."""

    def __init__(self, members: Sequence[AskedMember], ends: Ends) -> None:
        self._members = members
        self._ends = ends

    def progress(self) -> list[PartitionProgress]:
        owned = [(member, member.survey()) for member in self._members]
        ends = self._ends({tp for _, tps in owned for tp in tps})
        return [_progress(member, tp, state, ends[tp]) for member, tps in owned for tp, state in sorted(tps.items())]

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        owned = [(member, member.survey()) for member in self._members]
        # Another handler may consume the same topic, in a group of its own, and commit by itself there.
        by_hand = [(member, tps) for member, tps in owned if member.handler.commit == "manual"]
        asked = [(member, {each: offsets[each] for each in offsets if each in tps}) for member, tps in by_hand]
        strangers = offsets.keys() - {tp for _, mine in asked for tp in mine}
        automatic = [member for member, tps in owned if not strangers.isdisjoint(tps)]
        if automatic:
            raise ConfigError(
                f"Handler {automatic[0].handler.name} commits by itself what it has finished.",
                hint='To commit by hand, declare it with commit="manual".',
            )
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


def _progress(member: AskedMember, tp: TopicPartition, state: PartitionState, end: int) -> PartitionProgress:
    topic, partition = tp
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
