"""The dispatcher's rules: which records may run now, what their outcomes lead to, what may be committed.

One dispatcher thread drives this and carries out what it returns. Nothing here blocks, reads a clock or knows Kafka.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, takewhile
from operator import attrgetter
from types import MappingProxyType

from penstock.core.failures.breaker import Circuit
from penstock.core.failures.outcome import (
    DONE,
    Done,
    Failed,
    Held,
    Outcome,
    Postpone,
    ProducerRecord,
    Skipped,
    ToDeadLetter,
    TryAgain,
    decide,
)
from penstock.core.progress.commit_gate import CommitGate
from penstock.core.progress.offset_map import Range, encode
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.backpressure import Backpressure
from penstock.core.scheduling.effects import Attempt, Effects, Pause, Result, Returned, Send
from penstock.core.scheduling.in_flight import HandedOver, InFlight
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Order, Run
from penstock.core.scheduling.schedule import Later, Schedule

# A run of so many records may be a stretch of its partition, as whole partitions have them; those of keys are short.
_LONG = 32

NOTHING: Mapping[int, int] = MappingProxyType({})

DeadLetterOf = Callable[[Attempt, Failed], ProducerRecord]
RetryRecordOf = Callable[[Attempt, Failed, float], ProducerRecord]


class Dispatch:
    """All partitions of one member.

    Args:
        in_flight: How much may be delivered and unfinished; each partition has an even share of it.
        dead_letter_of: Builds a dead letter, or None where the handler has no dead-letter topic.
        retry_record_of: Builds what goes to the retry topic of so many seconds.
        retry_topics: The seconds of each retry topic, ascending; none where waits are spent in memory.
        circuit: Stops the app rather than dead-letter nearly everything, where asked for.
        ahead: At most once: records go to lanes when the commit behind them is accepted.
        random: Numbers from 0 up to 1, for the jitter of retries.
        order, concurrency and what follows: As ``Schedule`` has them.
    """

    def __init__(
        self,
        *,
        order: Order,
        concurrency: int,
        in_flight: InFlight,
        dead_letter_of: DeadLetterOf | None,
        random: Callable[[], float],
        retry_record_of: RetryRecordOf | None = None,
        retry_topics: Sequence[float] = (),
        circuit: Circuit | None = None,
        ahead: bool = False,
        null_keys_in_order: bool = False,
        batch: int | None = None,
        linger: float = 0.0,
        offset_of: Callable[[AnyRecord], int] = attrgetter("offset"),
        key_of: Callable[[AnyRecord], bytes | None] = attrgetter("key"),
    ) -> None:
        self._dead_letter_of = dead_letter_of
        self._retry_record_of = retry_record_of
        self._retry_topics = retry_topics
        self._circuit = circuit
        self._ahead = ahead
        self._random = random
        self._offset_of = offset_of
        self._schedule = Schedule(
            order=order,
            null_keys_in_order=null_keys_in_order,
            concurrency=concurrency,
            batch=batch,
            linger=linger,
            offset_of=offset_of,
            key_of=key_of,
        )
        self._epochs: dict[TopicPartition, Epoch] = {}
        self._numbers = count(1)
        self._in_flight = in_flight
        self._backpressure = Backpressure(in_flight, offset_of)
        self.settled = 0
        """Records that were delivered and hold no place in flight any more; the fetcher reads it."""
        self._excess = self._excess_taken = 0  # bytes of large values: in flight here; and of all that came in

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return tuple(self._epochs.values())

    # Partitions come and go.

    def assign(
        self, tp: TopicPartition, committed: int | None, metadata: str = "", finished: Sequence[Range] = ()
    ) -> Epoch:
        """A new epoch, from what the group has committed; ``finished`` is what the metadata's offset map says."""
        known = None if committed is None else (committed, metadata)
        epoch = Epoch(tp, next(self._numbers), Tracker(committed, finished), known)
        epoch.gate = CommitGate(self._offset_of) if self._ahead else None
        if finished:
            epoch.restored_up_to = epoch.highest_taken = finished[-1][1] - 1
            epoch.ranges = len(finished)
        self._epochs[tp] = epoch
        return epoch

    def stop_dispatching(self, tps: Iterable[TopicPartition]) -> list[Epoch]:
        """No further record of these starts; what is with workers still counts when it comes back."""
        stopped = [self._epochs[tp] for tp in tps if tp in self._epochs]
        for epoch in stopped:
            epoch.stop()
        return stopped

    def close(self, tps: Iterable[TopicPartition]) -> list[Epoch]:
        """These epochs are over; whatever still comes back from them is dropped."""
        closed = self.stop_dispatching(tps)
        for epoch in closed:
            epoch.end()
            del self._epochs[epoch.tp]
            self.settled += epoch.tracker.unfinished
            self._excess -= epoch.lighten([*epoch.excesses])
        return closed

    # How much is in flight.

    def room(self, delivered: HandedOver, *, much: bool = False) -> int:
        """How many more records may be delivered, after these; none, if ``much`` is wanted and there is only a little.

        Called by the fetcher, from its thread. What came in is read first: large values that come in meanwhile are then
        counted twice, and not left out.
        """
        on_their_way = delivered.excess - self._excess_taken
        records, excess = delivered.records - self.settled, on_their_way + self._excess
        if much and not self._in_flight.is_roomy(records, excess):
            return 0
        return self._in_flight.room(records, excess, largest=delivered.largest)

    def took(self, excess: int) -> None:
        """Large values of so many bytes have been delivered here, or were dropped."""
        self._excess_taken += excess

    # Records come in and go to workers.

    def deliver(self, tp: TopicPartition, records: Sequence[AnyRecord], excesses: Mapping[int, int] = NOTHING) -> None:
        """Put records of one partition on their lanes; if it is not ours any more they are dropped.

        ``excesses`` are those of large values, as ``InFlight`` has them.
        """
        epoch = self._open_epoch(tp)
        if epoch is None:
            self.settled += len(records)
            return
        offsets = list(map(self._offset_of, records))
        fresh = epoch.tracker.deliver(offsets)
        if len(fresh) < len(records):
            self.settled += len(records) - len(fresh)
            wanted = set(fresh)
            records = [record for record, offset in zip(records, offsets, strict=True) if offset in wanted]
            excesses = {offset: excess for offset, excess in excesses.items() if offset in wanted}
        if excesses:
            self._excess += epoch.weigh(excesses)
        if epoch.gate is None:
            self._schedule.deliver(epoch, records)
        else:
            epoch.gate.hold(records)

    def deliver_returned(
        self,
        tp: TopicPartition,
        records: Sequence[Returned],
        now: float,
        excesses: Mapping[int, int] = NOTHING,
    ) -> list[Returned]:
        """The same for a retry topic: from the first record that is not due on, they come again when it is.

        Records of other groups are passed over, as if they were not there. Returns what was put on lanes.
        """
        epoch = self._open_epoch(tp)
        if epoch is None:
            self.settled += len(records)
            return []
        due = list(takewhile(lambda each: each.said.wait <= 0, records))
        ours = [each for each in due if each.said.ours]
        for each in ours:
            offset = self._offset_of(each.record)
            # It may have failed here since, and then have been given back.
            epoch.failures[offset] = max(each.said.failures, epoch.failures.get(offset, 0))
        self.settled += len(records) - len(ours)
        if excesses:
            kept = {self._offset_of(each.record) for each in ours}
            excesses = {offset: excess for offset, excess in excesses.items() if offset in kept}
        self.deliver(tp, [each.record for each in ours], excesses)
        if len(due) < len(records):
            waits = records[len(due)]
            self._backpressure.sleep(epoch, self._offset_of(waits.record), now=now, wait=waits.said.wait)
        elif due:
            epoch.tracker.reach(self._offset_of(due[-1].record) + 1)
        return ours

    def _open_epoch(self, tp: TopicPartition) -> Epoch | None:
        """The epoch that records of this partition belong to, unless what comes of it is to be dropped."""
        epoch = self._epochs.get(tp)
        return epoch if epoch is not None and epoch.is_open else None

    def reach(self, tp: TopicPartition, offset: int) -> None:
        """The partition was read up to its end, which is this offset."""
        epoch = self._open_epoch(tp)
        # Where what is delivered is dropped, the end is not reached.
        if epoch is not None:
            epoch.tracker.reach(offset)

    def take(self, now: float, size: int) -> list[list[Run]]:
        """Runs that may start now, in one bundle of about ``size`` records for each worker that is free."""
        self._schedule.shape(self._epochs.values(), size)
        return self._schedule.take(now, size)

    @property
    def busy(self) -> int:
        """Bundles that were taken and are not released yet."""
        return self._schedule.busy

    def release(self) -> None:
        """A worker is free again."""
        self._schedule.release()

    def next_due(self) -> float | None:
        """When the next retry is due, here or in a retry topic, or an incomplete batch has waited long enough."""
        due = [self._schedule.next_due()]
        if self._retry_topics:
            due += [epoch.wake_at for epoch in self._epochs.values()]
        return min((at for at in due if at is not None), default=None)

    # Outcomes come back.

    def report(self, results: Iterable[Result], now: float) -> Effects:
        """Outcomes of runs, as workers got to them."""
        effects = Effects()
        finished: dict[Epoch, list[AnyRecord]] = {}
        schedule, circuit = self._schedule, self._circuit
        for run, outcomes, last in results:
            epoch, count = run.lane.epoch, len(outcomes)
            whole = last and 0 < count == len(run.records) and outcomes.count(DONE) == count
            if whole and (epoch in finished or self.is_current(epoch)):
                # Nearly always: all of a run is done, and its partition is still ours.
                if count >= _LONG and (offsets := self._stretch(run)):
                    self._finish(epoch, offsets, effects)
                    effects.finished.append((epoch, run.records))
                else:
                    finished.setdefault(epoch, []).extend(run.records)
                schedule.complete(run)
                if circuit is not None:
                    self._count_finished(count)
                continue
            done = schedule.collect(run, count)
            retries: list[Later] = []
            if self.is_current(epoch):
                here = finished.setdefault(epoch, [])
                if outcomes.count(DONE) == count:
                    here.extend(done)
                    self._count_finished(len(done))
                else:
                    retries = self._settle(epoch, done, outcomes, finished=here, effects=effects, now=now)
            schedule.put_back(run, retries, last=last)
        for epoch, records in finished.items():
            self._finish(epoch, list(map(self._offset_of, records)), effects)
        effects.finished.extend(finished.items())
        return effects

    def _stretch(self, run: Run) -> range | None:
        """The offsets of this run, if none is missing between them: then they are known without a look at each."""
        first, last = self._offset_of(run.records[0]), self._offset_of(run.records[-1])
        # Only where lanes have an order do the offsets of a run ascend.
        return range(first, last + 1) if run.lane.ordered and last - first == len(run.records) - 1 else None

    def _finish(self, epoch: Epoch, offsets: Sequence[int], effects: Effects) -> None:
        epoch.tracker.finish_all(offsets)
        epoch.ranges += len(offsets)
        epoch.ranges_counted = False
        self.settled += len(offsets)
        if epoch.excesses:
            self._excess -= epoch.lighten(offsets)
        if epoch.acked:
            for offset in offsets:
                epoch.acked.pop(offset, None)
        if epoch.failures:
            for offset in offsets:
                failures = epoch.failures.pop(offset, 0)
                if failures:
                    effects.again[epoch, offset] = failures + 1
        self._schedule.wake(epoch.unpark())

    def ack(self, tp: TopicPartition, offset: int, record: AnyRecord) -> Effects:
        """The user says that this very record is finished; what was read in another epoch does not count."""
        effects = Effects()
        epoch = self._epochs.get(tp)
        if epoch is None:
            return effects
        if epoch.held.get(offset) is record:
            self._release_held(epoch, [offset], effects)
        elif epoch.tracker.is_unfinished(offset):  # its handler is still at it, or its outcome on the way
            epoch.acked[offset] = record
        return effects

    def ack_below(self, tp: TopicPartition, offset: int) -> Effects:
        """The user says that all records below this offset that wait for it are finished."""
        effects = Effects()
        epoch = self._epochs.get(tp)
        if epoch is not None:
            self._release_held(epoch, [held for held in epoch.held if held < offset], effects)
        return effects

    def _release_held(self, epoch: Epoch, offsets: Sequence[int], effects: Effects) -> None:
        effects.finished.append((epoch, [epoch.held.pop(offset) for offset in offsets]))
        self._count_finished(len(offsets))
        self._finish(epoch, offsets, effects)

    def acknowledge(self, send: Send) -> bool:
        """The broker has what became of a record; False if that came too late to count."""
        epoch, offset = send.tried.epoch, send.tried.offset
        epoch.sending -= 1
        if not self.is_current(epoch):
            return False
        epoch.tracker.finish(offset)
        epoch.failures.pop(offset, None)
        epoch.acked.pop(offset, None)
        epoch.ranges += 1
        epoch.ranges_counted = False
        self.settled += 1
        self._excess -= epoch.lighten([offset])
        if send.failure is None:
            self._count_finished(1)
        self._schedule.wake(epoch.unpark())
        return True

    def abandon(self, send: Send) -> None:
        """What became of a record cannot be written now; the record stays unfinished and will be delivered again."""
        send.tried.epoch.sending -= 1

    def refuse(self, send: Send, failure: Failed) -> Effects:
        """The broker will never take this, so its record has failed for good after all."""
        tried = send.tried
        tried.epoch.sending -= 1
        effects = Effects()
        if self.is_current(tried.epoch):
            self._fail(tried, failure, effects)
        return effects

    # Commits and back-pressure.

    def commits(self, *, known_too: bool = False) -> dict[TopicPartition, tuple[int, str]]:
        """Commit points with their offset maps, each pair of one moment, where the broker has another (or any)."""
        snapshots = ((epoch, self._snapshot(epoch)) for epoch in self._epochs.values())
        return {e.tp: now for e, now in snapshots if now is not None and (known_too or now != e.committed)}

    def _snapshot(self, epoch: Epoch) -> tuple[int, str] | None:
        if epoch.gate is not None:
            ahead = None if epoch.gate.is_shut else epoch.tracker.ahead()
            return epoch.committed if ahead is None else (ahead[0], encode(*ahead) or "")
        point = epoch.tracker.commit_point
        if point is None:
            return None
        # Without a map nothing is lost: what is finished above the commit point would be repeated.
        return point, encode(point, epoch.tracker.finished_ranges()) or ""

    def committed(self, tp: TopicPartition, commit: tuple[int, str]) -> None:
        """The broker accepted this commit."""
        epoch = self._epochs.get(tp)
        if epoch is None:
            return
        epoch.committed = commit
        if epoch.gate is not None:
            self._schedule.deliver(epoch, epoch.gate.accept(commit[0]))

    def committing(self, commits: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """These commits are on their way; ``committed`` or ``refused`` follows for each."""
        for epoch in self._epochs.values():
            if epoch.gate is not None and epoch.tp in commits:
                epoch.gate.ask(commits[epoch.tp][0])

    def refused(self, tp: TopicPartition) -> None:
        """The broker did not accept a commit of this partition, as far as is known."""
        epoch = self._epochs.get(tp)
        if epoch is not None and epoch.gate is not None:
            epoch.gate.refuse()

    @property
    def waits_for_commit(self) -> bool:
        """At most once: whether there are records that can only be handled after the next commit."""
        return self._ahead and any(epoch.gate and not epoch.gate.is_shut for epoch in self._epochs.values())

    def caught_up(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether every owned partition is finished up to its end in ``ends``.

        What is not due in a retry topic is left to wait there, but what was due before it has to be finished.
        """
        return all(_has_reached(epoch, ends.get(epoch.tp, 0)) for epoch in self._epochs.values())

    def balance(self, now: float) -> tuple[list[Pause], list[Epoch]]:
        """Which partitions to pause and which to resume."""
        balanced = self._backpressure.turn(self._epochs.values(), now)
        self.settled += balanced.given_back
        self._excess -= balanced.freed
        return balanced.pause, balanced.resume

    def rewound(self, tp: TopicPartition) -> None:
        """The fetcher went back, so what comes from now on is new."""
        epoch = self._epochs.get(tp)
        if epoch is not None:
            epoch.rewinding = False

    def is_current(self, epoch: Epoch) -> bool:
        """Whether what comes of this epoch still counts."""
        # By identity: the partition may be ours again, but in a new epoch that knows nothing of this one.
        return self._epochs.get(epoch.tp) is epoch

    def _settle(
        self,
        epoch: Epoch,
        records: Sequence[AnyRecord],
        outcomes: Sequence[Outcome],
        *,
        finished: list[AnyRecord],
        effects: Effects,
        now: float,
    ) -> list[Later]:
        """Sort outcomes into consequences; returns the records that are to be tried again, each with its time."""
        retries = []
        for record, outcome in zip(records, outcomes, strict=True):
            if outcome is DONE:
                finished.append(record)
                self._count_finished(1)
                continue
            offset = self._offset_of(record)
            tried = Attempt(epoch, record, offset, epoch.attempt_at(offset))
            if isinstance(outcome, Done):
                if outcome.output is None:
                    finished.append(record)
                    self._count_finished(1)
                else:
                    self._send(Send(tried, outcome.output), effects)
            elif isinstance(outcome, Held):
                if epoch.acked.pop(offset, None) is record:
                    finished.append(record)
                    self._count_finished(1)
                else:
                    epoch.held[offset] = record
            elif isinstance(outcome, Skipped):
                finished.append(record)
                self._count_finished(1)
                effects.skipped.append((tried, outcome.reason))
            else:
                delay = self._fail(tried, outcome, effects)
                if delay is not None:
                    retries.append((record, now + delay))
        return retries

    def _fail(self, tried: Attempt, failure: Failed, effects: Effects) -> float | None:
        decision = decide(
            failure,
            attempt=tried.attempt,
            has_dead_letter=self._dead_letter_of is not None,
            random=self._random,
            retry_topics=self._retry_topics,
        )
        if isinstance(decision, TryAgain):
            if failure.wait is None:
                tried.epoch.failures[tried.offset] = tried.attempt
                effects.retried.append((tried, failure, decision.delay))
            else:  # no attempt was made, so none is counted
                effects.blocked.append((tried, failure, decision.delay))
            return decision.delay
        if isinstance(decision, Postpone) and self._retry_record_of is not None:
            outgoing = self._retry_record_of(tried, failure, decision.delay)
            self._send(Send(tried, outgoing, failure, decision.delay), effects)
        elif (
            isinstance(decision, ToDeadLetter)
            and self._dead_letter_of is not None
            and (self._circuit is None or self._circuit.lets_through())
        ):
            self._send(Send(tried, self._dead_letter_of(tried, failure), failure), effects)
        else:
            effects.halted = effects.halted or (tried, failure)
        return None

    def _count_finished(self, count: int) -> None:
        if self._circuit is not None:
            self._circuit.finished(count)

    @staticmethod
    def _send(send: Send, effects: Effects) -> None:
        send.tried.epoch.sending += 1
        effects.sends.append(send)


def _has_reached(epoch: Epoch, end: int) -> bool:
    point = epoch.tracker.commit_point
    if epoch.wake_at is not None:
        return not epoch.tracker.unfinished
    return point is not None and point >= end
