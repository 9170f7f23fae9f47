"""One handler's member: the real dispatcher, with a fetcher, workers and an outbox in memory."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from queue import SimpleQueue

from penstock.app import Handler
from penstock.app.dispatching.reporter import Reporter
from penstock.app.runs.live_command import HandlerState, LiveCommand
from penstock.core.progress.lease import FOREVER
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.dispatcher import Dispatcher
from penstock.engine.dispatch.manual_ack import with_ack
from penstock.engine.dispatch.thread_messages import AckedBelow, Inbox, PartitionState, Stop
from penstock.errors import PenstockError
from penstock.testing.bench_workers import OneByOne, make_workers
from penstock.testing.memory_broker import READING
from penstock.testing.memory_fetcher import MemoryFetcher
from penstock.testing.memory_outbox import MemoryOutbox
from penstock.testing.world import World


def _no_jitter() -> float:
    """The middle of the range, so that each wait is exactly as long as ``Retry`` says."""
    return 0.5


class BenchMember:
    """Call ``turn`` until it returns False; then move the clock to ``next_due``."""

    def __init__(self, handler: Handler, world: World) -> None:
        self.handler = handler
        self._clock = world.clock.elapsed
        self._started = self._clock()
        self._inbox: Inbox = SimpleQueue()
        self._commit_every = handler.commit_every
        self._quiet = False  # the last commit was empty, and nothing has happened since
        adapter = replace(READING, clock=self._clock, wall_clock=world.clock.time)
        if any(route.dedupe is not None for route in handler.routes):
            adapter = replace(adapter, ids_of=lambda name: world.seen_by(f"{handler.group} {name}"))
        if handler.commit == "manual":
            adapter = with_ack(adapter, self._inbox)
        self._reporter = Reporter(handler, world.emit, member=f"{handler.name}-bench", adapter=adapter, per_record=True)
        self._dispatcher = Dispatcher(
            handler,
            self._inbox,
            self._reporter,
            adapter=adapter,
            lease=FOREVER,
            until=None,
            clock=self._clock,
            wall_clock=world.clock.time,
            jitter=_no_jitter,
            bundle_size=OneByOne(),
            partitions=lambda: sum(len(world.broker.topic_partitions(topic)) for topic in handler.topics),
        )
        self.fetcher = MemoryFetcher(handler, self._inbox, world, in_flight_room=self._dispatcher.in_flight_room)
        self._workers = make_workers(handler, self._inbox, adapter, world.loop)
        self._dispatcher.attach(self.fetcher, self._workers, MemoryOutbox(self._inbox, world))
        self._reporter.started(self.fetcher.lag(), handler.topics)

    @property
    def error(self) -> PenstockError | None:
        return self._dispatcher.error

    @property
    def has_left(self) -> bool:
        return self._dispatcher.left

    def stop(self, reason: str) -> None:
        self._inbox.put(Stop(reason))

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """The progress of each owned partition. Handlers may call it: they run between the dispatcher's turns."""
        return {} if self.has_left else self._dispatcher.survey()

    @property
    def control_state(self) -> HandlerState:
        return self._dispatcher.control.state

    def carry_out(self, command: LiveCommand) -> None:
        """Carry out a checked command. Handlers may do it: they run between the dispatcher's turns."""
        self._dispatcher.control.carry_out(command)

    def ack_below(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Acknowledge all handled records below these offsets, at the next turn."""
        self._inbox.put(AckedBelow(offsets))

    def turn(self) -> bool:
        """Let fetcher, dispatcher and workers do what they can now. Returns whether there may be more to do."""
        return not self.has_left and self._turn()

    def _turn(self) -> bool:
        moved = self.fetcher.step() or not self._inbox.empty()
        commit = self._dispatcher.next_commit
        self._dispatcher.turn(0)
        if self.has_left:
            self._workers.close()
            self._reporter.stopped(self._clock() - self._started)
            return True
        if moved or self.fetcher.is_asked or not self._inbox.empty():
            self._quiet = False
            return True
        self._quiet |= self._dispatcher.next_commit != commit
        # Handlers run last: before the next one, all messages are processed, and commits that are due are sent. So a
        # crash in a handler finds a definite state.
        return self._workers.work()

    def next_due(self) -> float:
        """When it next has something to do, other than a commit."""
        return min(self._dispatcher.next_due(), self.fetcher.next_due())

    def next_commit(self, horizon: float) -> float:
        """When the next commit is due; empty commits before the horizon are skipped, up to the last of them.

        So an hour without records is one step, not thousands, and commits keep their rhythm.
        """
        commit = self._dispatcher.next_commit
        if not self._quiet or horizon == inf or self._commit_every <= 0:
            return commit
        return commit + max(0.0, (horizon - commit) // self._commit_every) * self._commit_every

    def kill(self) -> None:
        self._workers.close()
