"""The dispatcher's rules: which records may run now, what their outcomes lead to, what may be committed.

One dispatcher thread drives this and carries out what it returns. Nothing here blocks, reads a clock or knows Kafka.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count, groupby

from penstock.core.outcome import Done, Failed, Outcome, Outgoing, Skipped, TryAgain, decide
from penstock.core.record import Record, TopicPartition
from penstock.core.retry import Retry
from penstock.core.tracker import Tracker

# Records that travel to a worker together. Long enough to make the journey cheap, short enough to share workers fairly.
RUN_LIMIT = 256

# How long all places may be taken before partitions that hold more than their share must give some back. Pausing makes
# the client fetch again what it had buffered, so a moment of fullness is waited out.
FULL_SECONDS = 0.5


@dataclass(eq=False, slots=True)
class Epoch:
    """One ownership of one partition, from assigned to revoked.

    ``dispatching`` is read by workers between records: once it is False, they start no further one. While
    ``rewinding``, records still come from before the fetcher went back, and are dropped: they will come again.
    """

    place: TopicPartition
    number: int
    tracker: Tracker
    committed: int | None
    dispatching: bool = True
    paused: bool = False
    rewinding: bool = False
    running: int = 0  # runs that workers hold
    sending: int = 0  # outputs and dead letters that the broker has not acknowledged yet

    @property
    def drained(self) -> bool:
        return not self.running and not self.sending


@dataclass(eq=False, slots=True)
class Lane:
    """Records that must run in order, one at a time."""

    epoch: Epoch
    waiting: deque[Record] = field(default_factory=deque)
    held: bool = False  # a worker has it, or a retry waits for its time


@dataclass(eq=False, slots=True)
class Run:
    """The head of a lane, on its way to a worker."""

    lane: Lane
    records: list[Record]

    @property
    def epoch(self) -> Epoch:
        return self.lane.epoch


@dataclass(eq=False, slots=True)
class Send:
    """An output or a dead letter (then with its failure); its record is finished once the broker has it."""

    epoch: Epoch
    record: Record
    outgoing: Outgoing
    failure: Failed | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop fetching a partition, and go back to ``rewind_to`` where some of it was given back."""

    epoch: Epoch
    rewind_to: int | None


@dataclass(slots=True)
class Consequences:
    """What follows from a worker's report, for the dispatcher to carry out."""

    epoch: Epoch
    finished: list[Record] = field(default_factory=list)
    skipped: list[tuple[Record, str]] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    retried: tuple[Record, Failed, float] | None = None
    halted: tuple[Record, Failed] | None = None


DeadLetterOf = Callable[[Record, Failed], Outgoing]


class Dispatch:
    """All partitions of one member.

    Args:
        concurrency: Runs that may be with workers at once.
        max_in_flight: Records that may be delivered and unfinished; each partition has an even share of it.
        retry: When a failed record is attempted again.
        dead_letter_of: Builds a dead letter, or None where the handler has no dead-letter topic.
        random: Numbers from 0 up to 1, for the jitter of retries.
    """

    def __init__(
        self,
        *,
        concurrency: int,
        max_in_flight: int,
        retry: Retry,
        dead_letter_of: DeadLetterOf | None,
        random: Callable[[], float],
    ) -> None:
        self._concurrency = concurrency
        self._max_in_flight = max_in_flight
        self._retry = retry
        self._dead_letter_of = dead_letter_of
        self._random = random
        self._epochs: dict[TopicPartition, Epoch] = {}
        self._lanes: dict[TopicPartition, Lane] = {}
        self._ready: deque[Lane] = deque()
        self._backoffs: list[tuple[float, int, Lane]] = []
        self._numbers = count(1)
        self._running = 0
        self._full_since: float | None = None
        self.settled = 0
        """Records that were delivered and hold no place in flight any more; the fetcher reads it."""

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return tuple(self._epochs.values())

    # Partitions come and go.

    def assign(self, place: TopicPartition, committed: int | None) -> Epoch:
        epoch = Epoch(place, next(self._numbers), Tracker(committed), committed)
        self._epochs[place] = epoch
        self._lanes[place] = Lane(epoch)
        return epoch

    def stop_dispatching(self, places: Iterable[TopicPartition]) -> list[Epoch]:
        """No further record of these starts; what is with workers still counts when it comes back."""
        stopped = [self._epochs[place] for place in places if place in self._epochs]
        for epoch in stopped:
            epoch.dispatching = False
            self._lanes[epoch.place].waiting.clear()
        return stopped

    def close(self, places: Iterable[TopicPartition]) -> list[Epoch]:
        """These epochs are over; whatever still comes back from them is dropped."""
        closed = self.stop_dispatching(places)
        for epoch in closed:
            del self._epochs[epoch.place], self._lanes[epoch.place]
            self.settled += epoch.tracker.unfinished
        return closed

    # Records come in and go to workers.

    def deliver(self, records: Sequence[Record]) -> None:
        """Put records on their lanes; those of a partition that is not ours any more are dropped."""
        for place, group in groupby(records, key=lambda record: (record.topic, record.partition)):
            run, epoch = list(group), self._epochs.get(place)
            if epoch is None or not epoch.dispatching or epoch.rewinding:
                self.settled += len(run)
                continue
            epoch.tracker.deliver([record.offset for record in run])
            lane = self._lanes[place]
            if not lane.waiting and not lane.held:
                self._ready.append(lane)
            lane.waiting.extend(run)

    def reach(self, place: TopicPartition, offset: int) -> None:
        """The partition was read up to its end, which is this offset."""
        epoch = self._epochs.get(place)
        if epoch is not None:
            epoch.tracker.reach(offset)

    def take(self, now: float) -> list[Run]:
        """The runs that may start now."""
        while self._backoffs and self._backoffs[0][0] <= now:
            lane = heappop(self._backoffs)[2]
            lane.held = False
            self._make_ready(lane)
        runs = []
        while self._ready and self._running < self._concurrency:
            lane = self._ready.popleft()
            if not lane.waiting:  # emptied when its partition was revoked
                continue
            records = [lane.waiting.popleft() for _ in range(min(RUN_LIMIT, len(lane.waiting)))]
            lane.held = True
            lane.epoch.running += 1
            self._running += 1
            runs.append(Run(lane, records))
        return runs

    def next_retry(self) -> float | None:
        """When the next retry is due."""
        return self._backoffs[0][0] if self._backoffs else None

    # Outcomes come back.

    def report(self, run: Run, outcomes: Sequence[Outcome], *, last: bool, now: float) -> Consequences:
        """A worker reports the outcomes of the run's next records; ``last`` if it will do no more of it."""
        epoch, done = run.epoch, run.records[: len(outcomes)]
        del run.records[: len(outcomes)]
        consequences = Consequences(epoch)
        retry_at = None
        if self._is_current(epoch):
            delay = self._settle(done, outcomes, consequences)
            retry_at = None if delay is None else now + delay
        if last:
            self._running -= 1
            epoch.running -= 1
            back = ([done[-1]] if retry_at is not None else []) + run.records
            self._put_back(run.lane, back, retry_at)
        return consequences

    def acknowledge(self, send: Send) -> bool:
        """The broker has this output or dead letter; False if it came too late to count."""
        send.epoch.sending -= 1
        if not self._is_current(send.epoch):
            return False
        send.epoch.tracker.finish(send.record.offset)
        self.settled += 1
        return True

    def abandon(self, send: Send) -> None:
        """This output or dead letter cannot be written now; its record stays unfinished and will be delivered again."""
        send.epoch.sending -= 1

    def refuse(self, send: Send, failure: Failed) -> Consequences:
        """The broker will never take this output, so its record has failed after all."""
        send.epoch.sending -= 1
        consequences = Consequences(send.epoch)
        if self._is_current(send.epoch):
            self._fail(send.record, failure, consequences)
        return consequences

    # Commits and back-pressure.

    def commits(self) -> dict[TopicPartition, int]:
        """The commit points that the broker does not know yet."""
        points = {epoch.place: epoch.tracker.commit_point for epoch in self._epochs.values()}
        return {
            place: point
            for place, point in points.items()
            if point is not None and point != self._epochs[place].committed
        }

    def committed(self, place: TopicPartition, offset: int) -> None:
        """The broker accepted this commit."""
        epoch = self._epochs.get(place)
        if epoch is not None:
            epoch.committed = offset

    def caught_up(self, ends: dict[TopicPartition, int]) -> bool:
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
        """Take up to so many records off the lane's end; returns the offset to fetch from again."""
        waiting = self._lanes[epoch.place].waiting
        given = [waiting.pop() for _ in range(min(surplus, len(waiting)))]
        if not given:
            return None
        epoch.tracker.retract(given[-1].offset)
        epoch.rewinding = True
        self.settled += len(given)
        return given[-1].offset

    def _is_current(self, epoch: Epoch) -> bool:
        # By identity: the partition may be ours again, but in a new epoch that knows nothing of this one.
        return self._epochs.get(epoch.place) is epoch

    def _settle(
        self, records: Sequence[Record], outcomes: Sequence[Outcome], consequences: Consequences
    ) -> float | None:
        """Sort outcomes into consequences; returns the wait before the last record is tried again, if it is to be."""
        epoch, finished, delay = consequences.epoch, consequences.finished, None
        for record, outcome in zip(records, outcomes, strict=True):
            if isinstance(outcome, Done):
                if outcome.output is None:
                    finished.append(record)
                else:
                    epoch.sending += 1
                    consequences.sends.append(Send(epoch, record, outcome.output))
            elif isinstance(outcome, Skipped):
                consequences.skipped.append((record, outcome.reason))
            else:
                delay = self._fail(record, outcome, consequences)
        epoch.tracker.finish_all([record.offset for record in finished])
        for record, _ in consequences.skipped:
            epoch.tracker.finish(record.offset)
        self.settled += len(finished) + len(consequences.skipped)
        return delay

    def _fail(self, record: Record, failure: Failed, consequences: Consequences) -> float | None:
        decision = decide(
            failure,
            attempt=record.attempt,
            retry=self._retry,
            has_dead_letter=self._dead_letter_of is not None,
            random=self._random,
        )
        if isinstance(decision, TryAgain):
            consequences.retried = (record, failure, decision.delay)
            return decision.delay
        if self._dead_letter_of is None:  # then the decision is to halt
            consequences.halted = (record, failure)
        else:
            consequences.epoch.sending += 1
            outgoing = self._dead_letter_of(record, failure)
            consequences.sends.append(Send(consequences.epoch, record, outgoing, failure))
        return None

    def _put_back(self, lane: Lane, records: list[Record], retry_at: float | None) -> None:
        """The worker is through with this lane; what it left goes back to the lane's head."""
        lane.held = False
        if not lane.epoch.dispatching:
            return
        if retry_at is not None:
            # A copy: the handler may have kept the record of its failed attempt.
            records[0] = replace(records[0], attempt=records[0].attempt + 1)
        lane.waiting.extendleft(reversed(records))
        if retry_at is None:
            self._make_ready(lane)
        else:
            lane.held = True
            heappush(self._backoffs, (retry_at, next(self._numbers), lane))

    def _make_ready(self, lane: Lane) -> None:
        if lane.waiting:
            self._ready.append(lane)
