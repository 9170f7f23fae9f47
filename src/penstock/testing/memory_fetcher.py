"""A fetcher on the broker in memory: it fetches, commits, and revokes partitions when the bench asks for it."""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from math import inf
from operator import attrgetter
from queue import SimpleQueue

from penstock.app import Handler
from penstock.core.records.record import Record, TopicPartition
from penstock.core.scheduling.backpressure import FULL_SECONDS
from penstock.core.scheduling.in_flight import HandedOver, InFlight, client_bytes
from penstock.engine.dispatch.thread_messages import (
    Assigned,
    Commit,
    CommitAnswer,
    Commits,
    Fetched,
    Inbox,
    Left,
    Lost,
    Pause,
    Resume,
    Revoking,
    Rewound,
    ToFetcher,
)
from penstock.testing.bench_resources import close_gone
from penstock.testing.world import World

_FETCH_LIMIT = 500


class MemoryFetcher:
    """The only member of its group: it owns every partition of its topics, except while some are revoked."""

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        world: World,
        *,
        in_flight_room: Callable[[HandedOver], int],
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._world = world
        self._broker = world.broker
        self._faults = world.faults
        self._clock = world.clock.elapsed
        self._in_flight_room = in_flight_room
        self._commands: deque[ToFetcher] = deque()
        self._tps = [tp for topic in handler.consumed_topics for tp in world.broker.topic_partitions(topic)]
        self._positions: dict[TopicPartition, int] = {}  # the next offset of each owned partition
        self._ends: dict[TopicPartition, int] = {}  # the last end that was reported to the dispatcher
        self._paused: set[TopicPartition] = set()
        self._revoke: Revoking | None = None
        self._delivered = HandedOver()
        self._bounds = InFlight(handler.max_in_flight, handler.max_in_flight_bytes)
        self._full_since: float | None = None
        self._leaving = False

    # Called by the dispatcher.

    def ask(self, command: ToFetcher) -> None:
        self._commands.append(command)

    def leave(self) -> None:
        self._leaving = True

    # Called by the bench.

    @property
    def is_asked(self) -> bool:
        if self._revoke is not None:
            return not self._revoke.answer.empty()
        return bool(self._commands) or self._leaving

    @property
    def is_revoking(self) -> bool:
        return self._revoke is not None

    def lag(self) -> int:
        return sum(self._broker.log(tp).end - self._start(tp) for tp in self._tps)

    def revoke(self, tps: Collection[TopicPartition]) -> None:
        """Revoke these partitions, and assign them again after that."""
        mine = [tp for tp in tps if tp in self._positions]
        if mine:
            self._revoke = Revoking(mine, SimpleQueue())
            self._inbox.put(self._revoke)

    def lose(self, tps: Collection[TopicPartition]) -> None:
        mine = [tp for tp in tps if tp in self._positions]
        if mine:
            self._inbox.put(Lost(mine))
            self._drop(mine)

    def next_due(self) -> float:
        """When the dispatcher must check back-pressure, because nothing more may be in flight."""
        due = inf if self._full_since is None else self._full_since + FULL_SECONDS
        return due if due > self._clock() else inf

    def step(self) -> bool:
        """Do what there is to do now. Returns whether there was anything to do."""
        if self._revoke is not None:
            return self._finish_revoke(self._revoke)
        if self._commands:
            self._carry_out(self._commands.popleft())
            return True
        if self._leaving:
            self._leave()
            return True
        return self._assign() or self._fetch()

    def _leave(self) -> None:
        if self._positions:
            self.revoke(list(self._positions))
        else:
            self._inbox.put(Left())

    def _assign(self) -> bool:
        missing = [tp for tp in self._tps if tp not in self._positions]
        if missing:
            self._inbox.put(Assigned({tp: self._broker.committed(self._handler.group, tp) for tp in missing}))
            self._positions.update({tp: self._start(tp) for tp in missing})
        return bool(missing)

    def _start(self, tp: TopicPartition) -> int:
        committed = self._broker.committed(self._handler.group, tp)
        if committed is not None:
            return committed[0]
        return 0 if self._handler.start == "earliest" else self._broker.log(tp).end

    def _fetch(self) -> bool:
        # Keep one slot in reserve, as the real fetcher does.
        room = min(_FETCH_LIMIT, self._in_flight_room(self._delivered) - 1)
        records: dict[TopicPartition, list[Record]] = {}
        ends: dict[TopicPartition, int] = {}
        for tp in [tp for tp in self._positions if tp not in self._paused]:
            log = self._broker.log(tp)
            found = self._limited_by_bytes(log.read(self._positions[tp], room)) if room > 0 else []
            if found:
                records[tp] = found
                room -= len(found)
                # A partition that was read moves to the end of the queue, so that each gets its turn.
                del self._positions[tp]
                self._positions[tp] = found[-1].offset + 1
            if not log.count_from(self._positions[tp]) and self._ends.get(tp) != log.end:
                ends[tp] = self._ends[tp] = self._positions[tp] = log.end
        if room > 0:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = self._clock()
        if records or ends:
            excesses = {tp: self._excesses(found) for tp, found in records.items()}
            excess = chain.from_iterable(each.values() for each in excesses.values())
            self._delivered.add(sum(map(len, records.values())), excess)
            self._inbox.put(Fetched(records, ends, excesses))
        return bool(records or ends)

    def _limited_by_bytes(self, records: list[Record]) -> list[Record]:
        """The first records, as many as the client's buffers hold, and at least one."""
        left = sum(client_bytes(self._handler.max_in_flight_bytes))
        for index, record in enumerate(records):
            left -= _size(record)
            if left < 0:
                return records[: max(1, index)]
        return records

    def _excesses(self, records: list[Record]) -> dict[int, int]:
        return self._bounds.excesses(records, offset_of=attrgetter("offset"), size_of=_size)

    def _carry_out(self, command: ToFetcher) -> None:
        if isinstance(command, Commit):
            self._commit(command.commits)
        elif isinstance(command, Pause):
            self._pause(command.tps)
        elif isinstance(command, Resume):
            self._paused.difference_update(command.tps)

    def _pause(self, tps: Mapping[TopicPartition, int | None]) -> None:
        self._paused.update(tp for tp in tps if tp in self._positions)
        rewinds = {tp: to for tp, to in tps.items() if to is not None and tp in self._positions}
        self._positions.update(rewinds)
        for tp in rewinds:
            self._ends.pop(tp, None)
        self._inbox.put(Rewound(list(rewinds)))

    def _commit(self, commits: Commits, *, is_last: bool = False) -> None:
        # Ignore a commit for a partition that was revoked since: it is older than the last commit of its epoch. It
        # cannot reach a new epoch either, because commands are carried out before assignments.
        owned = {tp: commit for tp, commit in commits.items() if tp in self._positions}
        refused = {} if self._faults.commits is None else dict.fromkeys(owned, self._faults.commits.str())
        for tp, commit in owned.items():
            if tp not in refused:
                self._broker.commit(self._handler.group, tp, commit)
        self._inbox.put(CommitAnswer(owned, refused, is_last))

    def _finish_revoke(self, revoke: Revoking) -> bool:
        if revoke.answer.empty():
            return False
        commits = revoke.answer.get_nowait()
        if commits:
            self._commit(commits, is_last=True)
        self._drop(list(revoke.tps))
        self._revoke = None
        return True

    def _drop(self, tps: Collection[TopicPartition]) -> None:
        close_gone(self._handler, tps, self._world)
        for tp in tps:
            self._positions.pop(tp, None)
            self._ends.pop(tp, None)
            self._paused.discard(tp)


def _size(record: Record) -> int:
    return len(record.value or b"")
