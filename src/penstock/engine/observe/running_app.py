"""Answers ``app.progress()`` and ``app.commit()`` and takes commands for a running app, on the caller's thread."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from penstock.app import Handler, PartitionProgress
from penstock.app.runs.live_command import HandlerState, LiveCommand, addressed, commanded
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.engine.dispatch.thread_messages import PartitionState
from penstock.errors import ConfigError, StateError

Ends = Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]]


class AskedMember(Protocol):
    """What this module needs of a member. The engine, share groups and the testing kit each have one."""

    @property
    def handler(self) -> Handler: ...
    def survey(self) -> dict[TopicPartition, PartitionState]: ...
    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None: ...
    @property
    def control_state(self) -> HandlerState: ...
    def carry_out(self, command: LiveCommand) -> None: ...


class RunningApp:
    """``ends`` looks up the end offsets of partitions; ``now`` is the time in seconds since 1970."""

    def __init__(
        self,
        members: Sequence[AskedMember],
        ends: Ends,
        *,
        emit: Callable[[Event], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._members = members
        self._ends = ends
        self._emit = emit
        self._now = now

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

    def states(self) -> list[HandlerState]:
        return [each.state for each in self._handlers()]

    def command(self, command: LiveCommand) -> list[HandlerState]:
        handlers = self._handlers()
        if not handlers:
            raise StateError("The app has not started its handlers yet.", hint="Try again in a moment.")
        found = addressed(command, handlers)
        for each in found:
            each.carry_out(command)
        for each in found:
            self._emit(commanded(command, each.handler, at=self._now()))
        return [each.state for each in found]

    def _handlers(self) -> list["_MembersOfHandler"]:
        by_name: dict[tuple[str, str], list[AskedMember]] = {}
        for member in [*self._members]:
            by_name.setdefault((member.handler.group, member.handler.name), []).append(member)
        return [_MembersOfHandler(members) for members in by_name.values()]


class _MembersOfHandler:
    """The members of one handler in this process, which a command is for together."""

    def __init__(self, members: Sequence[AskedMember]) -> None:
        self._members = members
        self.handler = members[0].handler
        self.refusal = (
            f"Handler {self.handler.name} consumes as a share group, which takes no commands: while it pauses, the "
            "locks of its records would end."
            if self.handler.is_shared
            else None
        )

    @cached_property
    def state(self) -> HandlerState:
        states = [member.control_state for member in self._members]
        return replace(
            states[0],
            paused=any(each.paused for each in states),
            paused_partitions=tuple(sorted({tp for each in states for tp in each.paused_partitions})),
            partitions=tuple(sorted(tp for each in states for tp in each.partitions)),
        )

    def carry_out(self, command: LiveCommand) -> None:
        for member in self._members:
            member.carry_out(command)
        self.__dict__.pop("state", None)  # it was cached before the command


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
