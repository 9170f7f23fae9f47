"""The dispatcher's rules: which records may run now, what their outcomes lead to, what may be committed.

One dispatcher thread drives this and carries out what it returns. Nothing here blocks, reads a clock or knows Kafka.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from penstock.core.decisions import Consequences, Pause, Result, Send
from penstock.core.lanes import Epoch, Lane, Order, Run
from penstock.core.offset_map import Range, encode
from penstock.core.outcome import DONE, Done, Failed, Outcome, Outgoing, Skipped, TryAgain, decide
from penstock.core.record import Record, TopicPartition
from penstock.core.retry import Retry
from penstock.core.tracker import Tracker

# Records of one lane that travel together. A bound, so that a lane with a long queue shares workers fairly.
RUN_LIMIT = 256
# Records without an order are runs of their own, so that a slow one holds up nobody.
_UNORDERED_RUN_LIMIT = 1

# How long all places may be taken before partitions that hold more than their share must give some back. Pausing makes
# the client fetch again what it had buffered, so a moment of fullness is waited out.
FULL_SECONDS = 0.5

# The lanes of an epoch that no key names. Keys are bytes, so these cannot meet one.
_WHOLE_PARTITION = "partition"
_UNORDERED = "unordered"


DeadLetterOf = Callable[[Record, Failed], Outgoing]


class Dispatch:
    """All partitions of one member.

    Args:
        order: What makes a lane: the partition, the key, or nothing.
        null_keys_in_order: Whether records without a key share a lane, where keys make lanes.
        concurrency: Workers that may be busy at once.
        max_in_flight: Records that may be delivered and unfinished; each partition has an even share of it.
        retry: When a failed record is attempted again.
        dead_letter_of: Builds a dead letter, or None where the handler has no dead-letter topic.
        random: Numbers from 0 up to 1, for the jitter of retries.
    """

    def __init__(
        self,
        *,
        order: Order,
        concurrency: int,
        max_in_flight: int,
        retry: Retry,
        dead_letter_of: DeadLetterOf | None,
        random: Callable[[], float],
        null_keys_in_order: bool = False,
    ) -> None:
        self._order = order
        self._null_keys_in_order = null_keys_in_order
        self._concurrency = concurrency
        self._max_in_flight = max_in_flight
        self._retry = retry
        self._dead_letter_of = dead_letter_of
        self._random = random
        self._epochs: dict[TopicPartition, Epoch] = {}
        self._ready: deque[Lane] = deque()
        self._backoffs: list[tuple[float, int, Lane]] = []
        self._numbers = count(1)
        self._busy = 0
        self._full_since: float | None = None
        self.settled = 0
        """Records that were delivered and hold no place in flight any more; the fetcher reads it."""

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return tuple(self._epochs.values())

    # Partitions come and go.

    def assign(
        self, place: TopicPartition, committed: int | None, metadata: str = "", finished: Sequence[Range] = ()
    ) -> Epoch:
        """A new epoch, from what the group has committed; ``finished`` is what the metadata's offset map says."""
        known = None if committed is None else (committed, metadata)
        epoch = Epoch(place, next(self._numbers), Tracker(committed, finished), known)
        if finished:
            epoch.restored_up_to = epoch.highest_taken = finished[-1][1] - 1
            epoch.ranges = len(finished)
        self._epochs[place] = epoch
        return epoch

    def stop_dispatching(self, places: Iterable[TopicPartition]) -> list[Epoch]:
        """No further record of these starts; what is with workers still counts when it comes back."""
        stopped = [self._epochs[place] for place in places if place in self._epochs]
        for epoch in stopped:
            epoch.dispatching = False
            for lane in epoch.lanes.values():
                lane.waiting.clear()
            epoch.lanes.clear()
            epoch.parked.clear()
        return stopped

    def close(self, places: Iterable[TopicPartition]) -> list[Epoch]:
        """These epochs are over; whatever still comes back from them is dropped."""
        closed = self.stop_dispatching(places)
        for epoch in closed:
            del self._epochs[epoch.place]
            self.settled += epoch.tracker.unfinished
        return closed

    # Records come in and go to workers.

    def deliver(self, place: TopicPartition, records: Sequence[Record]) -> None:
        """Put records of one partition on their lanes; if it is not ours any more they are dropped."""
        epoch = self._epochs.get(place)
        if epoch is None or not epoch.dispatching or epoch.rewinding:
            self.settled += len(records)
            return
        fresh = epoch.tracker.deliver([record.offset for record in records])
        if len(fresh) < len(records):
            self.settled += len(records) - len(fresh)
            wanted = set(fresh)
            records = [record for record in records if record.offset in wanted]
        if self._order == "key":
            for record in records:
                key: Hashable = record.key
                if key is None:
                    key = None if self._null_keys_in_order else _UNORDERED
                self._lane(epoch, key).waiting.append(record)
        elif records:
            whole = _WHOLE_PARTITION if self._order == "partition" else _UNORDERED
            self._lane(epoch, whole).waiting.extend(records)

    def _lane(self, epoch: Epoch, key: Hashable) -> Lane:
        """The lane of this key; a new one is ready as soon as it has a record."""
        lane = epoch.lanes.get(key)
        if lane is None:
            lane = epoch.lanes[key] = Lane(epoch, key, ordered=key is not _UNORDERED)
            self._ready.append(lane)
        return lane

    def reach(self, place: TopicPartition, offset: int) -> None:
        """The partition was read up to its end, which is this offset."""
        epoch = self._epochs.get(place)
        if epoch is not None and not epoch.rewinding:
            epoch.tracker.reach(offset)

    def take(self, now: float, size: int) -> list[list[Run]]:
        """Runs that may start now, in one bundle of about ``size`` records for each worker that is free."""
        while self._backoffs and self._backoffs[0][0] <= now:
            lane = heappop(self._backoffs)[2]
            lane.held = False
            self._make_ready(lane)
        bundles = []
        while self._ready and self._busy < self._concurrency:
            bundle = self._bundle(size)
            if bundle:
                self._busy += 1
                bundles.append(bundle)
        return bundles

    def _bundle(self, size: int) -> list[Run]:
        bundle, room = [], size
        while self._ready and room > 0:
            lane = self._ready.popleft()
            epoch = lane.epoch
            if not lane.waiting:  # emptied since: its partition was revoked or gave records back
                continue
            limit = min(room, RUN_LIMIT if lane.ordered else _UNORDERED_RUN_LIMIT)
            if not epoch.map_fits_after(lane.waiting[min(limit, len(lane.waiting)) - 1].offset):
                if lane.waiting[0].offset != epoch.tracker.commit_point:
                    epoch.parked.append(lane)
                    continue
                limit = 1  # the one at the commit point can only make the map smaller
            records = lane.take(limit)
            room -= len(records)
            if lane.ordered:
                lane.held = True
            elif lane.waiting:
                self._ready.append(lane)
            else:
                del epoch.lanes[lane.key]
            epoch.running += 1
            epoch.in_progress += len(records)
            epoch.highest_taken = max(epoch.highest_taken, records[-1].offset)
            bundle.append(Run(lane, records))
        return bundle

    def release(self) -> None:
        """A worker is free again."""
        self._busy -= 1

    def next_retry(self) -> float | None:
        """When the next retry is due."""
        return self._backoffs[0][0] if self._backoffs else None

    # Outcomes come back.

    def report(self, results: Iterable[Result], now: float) -> Consequences:
        """Outcomes of runs, as workers got to them."""
        consequences = Consequences()
        finished: dict[Epoch, list[Record]] = {}
        for run, outcomes, last in results:
            epoch = run.epoch
            done = run.records[run.taken : run.taken + len(outcomes)]
            run.taken += len(outcomes)
            epoch.in_progress -= len(outcomes)
            retries: list[tuple[Record, float]] = []
            if self._is_current(epoch):
                here = finished.setdefault(epoch, [])
                retries = self._settle(epoch, done, outcomes, finished=here, consequences=consequences, now=now)
            if not run.lane.ordered:
                for record, at in retries:
                    self._retry_alone(epoch, record, at)
            if last:
                self._end(run, retries)
        for epoch, records in finished.items():
            epoch.tracker.finish_all([record.offset for record in records])
            epoch.ranges += len(records)
            self.settled += len(records)
            self._unpark(epoch)
        consequences.finished = [*finished.items()]
        return consequences

    def _end(self, run: Run, retries: Sequence[tuple[Record, float]]) -> None:
        """The worker does no more of this run; what it left goes back."""
        epoch, left = run.epoch, run.records[run.taken :]
        epoch.running -= 1
        epoch.in_progress -= len(left)
        if run.lane.ordered:
            self._put_back(run.lane, left, retries)
        elif left and epoch.dispatching:
            self._lane(epoch, _UNORDERED).waiting.extendleft(reversed(left))

    def acknowledge(self, send: Send) -> bool:
        """The broker has this output or dead letter; False if it came too late to count."""
        send.epoch.sending -= 1
        if not self._is_current(send.epoch):
            return False
        send.epoch.tracker.finish(send.record.offset)
        send.epoch.ranges += 1
        self.settled += 1
        self._unpark(send.epoch)
        return True

    def abandon(self, send: Send) -> None:
        """This output or dead letter cannot be written now; its record stays unfinished and will be delivered again."""
        send.epoch.sending -= 1

    def refuse(self, send: Send, failure: Failed) -> Consequences:
        """The broker will never take this output, so its record has failed after all."""
        send.epoch.sending -= 1
        consequences = Consequences()
        if self._is_current(send.epoch):
            self._fail(send.epoch, send.record, failure, consequences)
        return consequences

    # Commits and back-pressure.

    def commits(self) -> dict[TopicPartition, tuple[int, str]]:
        """Commit points with their offset maps, each pair of one moment, where the broker has another."""
        snapshots = ((epoch, self._snapshot(epoch)) for epoch in self._epochs.values())
        return {epoch.place: now for epoch, now in snapshots if now is not None and now != epoch.committed}

    def _snapshot(self, epoch: Epoch) -> tuple[int, str] | None:
        point = epoch.tracker.commit_point
        if point is None:
            return None
        # Without a map nothing is lost: what is finished above the commit point would be repeated.
        return point, encode(point, epoch.tracker.finished_ranges()) or ""

    def committed(self, place: TopicPartition, commit: tuple[int, str]) -> None:
        """The broker accepted this commit."""
        epoch = self._epochs.get(place)
        if epoch is not None:
            epoch.committed = commit

    def caught_up(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether every owned partition is finished up to its end in ``ends``."""
        points = ((epoch.tracker.commit_point, ends.get(epoch.place, 0)) for epoch in self._epochs.values())
        return all(point is not None and point >= end for point, end in points)

    def balance(self, now: float) -> tuple[list[Pause], list[Epoch]]:
        """Which partitions to pause and which to resume, so that a slow one does not keep the others' places.

        That matters only where all places are taken for a while. Then a partition with more than its share gives
        back what has not started, and fetching it goes on from there later.
        """
        epochs = self._epochs.values()
        if sum(epoch.tracker.unfinished for epoch in epochs) < self._max_in_flight * 3 // 4:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        share = max(1, self._max_in_flight // max(1, len(epochs)))
        resume = [epoch for epoch in epochs if epoch.paused and epoch.tracker.unfinished <= share // 2]
        pause = []
        if self._full_since is not None and now - self._full_since >= FULL_SECONDS:
            greedy = [epoch for epoch in epochs if not epoch.paused and epoch.tracker.unfinished > share]
            pause = [Pause(epoch, self._give_back(epoch, epoch.tracker.unfinished - share)) for epoch in greedy]
        for epoch in (*resume, *(each.epoch for each in pause)):
            epoch.paused = not epoch.paused
        return pause, resume

    def rewound(self, place: TopicPartition) -> None:
        """The fetcher went back, so what comes from now on is new."""
        epoch = self._epochs.get(place)
        if epoch is not None:
            epoch.rewinding = False

    def _give_back(self, epoch: Epoch, surplus: int) -> int | None:
        """Take up to so many records off the ends of lanes; returns the offset to fetch from again.

        Only those above everything that is finished, in progress or sent: what comes again must all be new.
        """
        touched = epoch.tracker.highest_finished() if epoch.drained else epoch.highest_taken
        touched = max(touched, epoch.restored_up_to)
        waiting = (record.offset for lane in epoch.lanes.values() for record in lane.waiting)
        untouched = sorted(offset for offset in waiting if offset > touched)
        if not untouched:
            return None
        first = untouched[-min(surplus, len(untouched))]
        for lane in [*epoch.lanes.values()]:
            while lane.waiting and lane.waiting[-1].offset >= first:
                lane.waiting.pop()
                self.settled += 1
            if not lane.waiting and not lane.held:
                del epoch.lanes[lane.key]
        epoch.tracker.retract(first)
        epoch.rewinding = True
        return first

    def _is_current(self, epoch: Epoch) -> bool:
        # By identity: the partition may be ours again, but in a new epoch that knows nothing of this one.
        return self._epochs.get(epoch.place) is epoch

    def _settle(
        self,
        epoch: Epoch,
        records: Sequence[Record],
        outcomes: Sequence[Outcome],
        *,
        finished: list[Record],
        consequences: Consequences,
        now: float,
    ) -> list[tuple[Record, float]]:
        """Sort outcomes into consequences; returns the records that are to be tried again, each with its time."""
        retries = []
        for record, outcome in zip(records, outcomes, strict=True):
            if outcome is DONE:
                finished.append(record)
            elif isinstance(outcome, Done):
                if outcome.output is None:
                    finished.append(record)
                else:
                    epoch.sending += 1
                    consequences.sends.append(Send(epoch, record, outcome.output))
            elif isinstance(outcome, Skipped):
                finished.append(record)
                consequences.skipped.append((record, outcome.reason))
            else:
                delay = self._fail(epoch, record, outcome, consequences)
                if delay is not None:
                    retries.append((record, now + delay))
        return retries

    def _fail(self, epoch: Epoch, record: Record, failure: Failed, consequences: Consequences) -> float | None:
        decision = decide(
            failure,
            attempt=record.attempt,
            retry=self._retry,
            has_dead_letter=self._dead_letter_of is not None,
            random=self._random,
        )
        if isinstance(decision, TryAgain):
            consequences.retried.append((record, failure, decision.delay))
            return decision.delay
        if self._dead_letter_of is None:  # then the decision is to halt
            consequences.halted = (record, failure)
        else:
            epoch.sending += 1
            consequences.sends.append(Send(epoch, record, self._dead_letter_of(record, failure), failure))
        return None

    def _put_back(self, lane: Lane, left: Sequence[Record], retries: Sequence[tuple[Record, float]]) -> None:
        """The worker is through with this lane; what it left goes back to the lane's head."""
        lane.held = False
        if not lane.epoch.dispatching:
            return
        lane.waiting.extendleft(reversed(left))
        if not retries:
            self._make_ready(lane)
        else:  # only the last record of an ordered run can be one to try again: the worker stops at it
            record, at = retries[-1]
            lane.waiting.appendleft(_next_attempt(record))
            self._back_off(lane, at)

    def _retry_alone(self, epoch: Epoch, record: Record, at: float) -> None:
        """A record without an order waits for its next attempt in a lane of its own."""
        if epoch.dispatching:
            lane = Lane(epoch, ("retry", record.offset), waiting=deque([_next_attempt(record)]))
            epoch.lanes[lane.key] = lane
            self._back_off(lane, at)

    def _back_off(self, lane: Lane, at: float) -> None:
        lane.held = True
        heappush(self._backoffs, (at, next(self._numbers), lane))

    def _make_ready(self, lane: Lane) -> None:
        if lane.waiting:
            self._ready.append(lane)
        elif lane.epoch.lanes.get(lane.key) is lane:
            del lane.epoch.lanes[lane.key]

    def _unpark(self, epoch: Epoch) -> None:
        """Something moved, so the lanes that waited for the offset map are looked at again."""
        if epoch.parked:
            self._ready.extend(epoch.parked)
            epoch.parked.clear()


def _next_attempt(record: Record) -> Record:
    # A copy: the handler may have kept the record of its failed attempt.
    return replace(record, attempt=record.attempt + 1)
