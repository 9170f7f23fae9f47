"""Answers ``app.progress()`` and ``app.commit()`` for a running app, on the caller's thread."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from penstock.app import Handler, PartitionProgress
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import PartitionState
from penstock.errors import ConfigError, StateError

Ends = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]]


class AskedMember(Protocol):
    """What this module needs of a member. The engine, share groups and the testing kit each have one."""

    @property
    def handler(self) -> Handler: ...
    def survey(self) -> dict[TopicPartition, PartitionState]: ...
    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class RunningApp:
    """``ends`` looks up the end offsets of partitions."""

    def __init__(self, members: Sequence[AskedMember], ends: Ends) -> None:
        self._members = members
        self._ends = ends

    def progress(self) -> list[PartitionProgress]:
        owned = [(member, member.survey()) for member in self._members]
        ends = self._ends({tp for _, tps in owned for tp in tps})
        return [_progress(member, tp, state, ends[tp]) for member, tps in owned for tp, state in sorted(tps.items())]

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        owned = [(member, member.survey()) for member in self._members]
        # Another handler may consume the same topic in another group and commit automatically there.
        manual = [(member, tps) for member, tps in owned if member.handler.commit == "manual"]
        asked = [(member, {each: offsets[each] for each in offsets if each in tps}) for member, tps in manual]
        not_manual = offsets.keys() - {tp for _, mine in asked for tp in mine}
        automatic = [member for member, tps in owned if not not_manual.isdisjoint(tps)]
        if automatic:
            raise ConfigError(
                f"Handler {automatic[0].handler.name} commits automatically, so app.commit() cannot commit for it.",
                hint='To commit manually, declare the handler with commit="manual".',
            )
        if not_manual:
            topic, partition = min(not_manual)
            raise StateError(
                f"This process does not own {topic}[{partition}] now, so it cannot commit it.",
                hint="It may have moved to another member, which gets its uncommitted records again.",
            )
        # Acknowledge only after all checks, so that an error leaves everything unchanged.
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
