"""The dispatcher's rules: which records may run now, what follows from their outcomes, what may be committed.

The dispatcher's thread calls these rules and carries out the effects that they return. Nothing here blocks, reads a
clock or calls Kafka. This module owns the epochs; ``Schedule`` decides what runs, ``OutcomeRules`` what follows from
outcomes, ``Backpressure`` which partitions pause.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, takewhile
from operator import attrgetter
from types import MappingProxyType

from penstock.core.failures.breaker import Circuit
from penstock.core.failures.outcome import Failed
from penstock.core.failures.pausing_circuit import PausingCircuit
from penstock.core.progress.commit_gate import CommitGate
from penstock.core.progress.offset_map import Range
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.at_rest import awaits_outcomes
from penstock.core.scheduling.backpressure import Backpressure
from penstock.core.scheduling.commanded_pause import CommandedPause
from penstock.core.scheduling.effects import Effects, Pause, Result, Returned, Send
from penstock.core.scheduling.epoch_parts import MapRoom
from penstock.core.scheduling.fair_queue import Fairness
from penstock.core.scheduling.fair_schedule import FairSchedule
from penstock.core.scheduling.in_flight import InFlight, InFlightCount
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Lane, LaneRun, Order
from penstock.core.scheduling.outcome_rules import DeadLetterOf, OutcomeRules, RetryRecordOf
from penstock.core.scheduling.rate_limit import RateLimit
from penstock.core.scheduling.schedule import Schedule

NOTHING: Mapping[int, int] = MappingProxyType({})


class Dispatch:
    """All partitions of one member.

    Args:
        in_flight: How much may be in flight; each partition has an equal share.
        dead_letter_of: Builds a dead letter; None if the handler has no dead-letter topic.
        retry_record_of: Builds the record for the retry topic with this delay in seconds.
        retry_topics: The delays of the retry topics in seconds, ascending; empty if retries wait in memory.
        circuit: The circuit breaker, if one is declared: it stops the app or pauses the handler instead of
            dead-lettering nearly everything.
        ahead: At most once: records go to lanes only after the broker has accepted a commit behind them.
        random: Returns numbers from 0 up to 1, for the jitter of retries.
        fairness: With ``fair_by=`` or ``priority=``: whose records run first.
        order, concurrency, null_keys_in_order, batch, linger, offset_of, key_of: See ``Schedule``.
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
        fairness: Fairness | None = None,
        null_keys_in_order: bool = False,
        batch: int | None = None,
        linger: float = 0.0,
        offset_of: Callable[[AnyRecord], int] = attrgetter("offset"),
        key_of: Callable[[AnyRecord], bytes | None] = attrgetter("key"),
    ) -> None:
        self._has_retry_topics = bool(retry_topics)
        self._ahead = ahead
        self._offset_of = offset_of
        self._pausing = circuit if isinstance(circuit, PausingCircuit) else None
        self.fairness = fairness
        schedule = Schedule if fairness is None else partial(FairSchedule, fairness)
        self._schedule: Schedule = schedule(
            order=order,
            null_keys_in_order=null_keys_in_order,
            concurrency=concurrency,
            batch=batch,
            linger=linger,
            offset_of=offset_of,
            key_of=key_of,
        )
        self._epochs: dict[TopicPartition, Epoch] = {}
        # At least the epochs with unfinished records. A member may have hundreds of partitions, and few of them busy.
        self._busy_epochs: set[Epoch] = set()
        self._numbers = count(1)
        self._backpressure = Backpressure(in_flight, offset_of)
        self.in_flight = InFlightCount(in_flight)
        self.commanded = CommandedPause(self._epochs, self._schedule)
        """What commands have paused."""
        self._outcomes = OutcomeRules(
            self._epochs,
            self._schedule,
            self.in_flight,
            dead_letter_of=dead_letter_of,
            retry_record_of=retry_record_of,
            retry_topics=retry_topics,
            circuit=circuit,
            random=random,
            offset_of=offset_of,
        )

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return tuple(self._epochs.values())

    @property
    def awaits_outcomes(self) -> bool:
        """Whether something may wait for the records that workers have: other records, a revoke, or the fetcher."""
        return awaits_outcomes(self._busy_epochs, self.in_flight)

    @property
    def settled(self) -> int:
        """How many delivered records are no longer in flight: finished, or dropped."""
        return self.in_flight.settled

    # Partitions are assigned, revoked and lost.

    def assign(
        self,
        tp: TopicPartition,
        start: int | None,
        metadata: str = "",
        finished: Sequence[Range] = (),
        *,
        is_committed: bool = True,
    ) -> Epoch:
        """Begin an epoch at the group's commit; ``finished`` are the ranges of the offset map in its metadata.

        With ``is_committed=False``, the broker has no such commit: the epoch commits even if no new record arrives.
        """
        restored_up_to = finished[-1][1] - 1 if finished else -1
        epoch = self._epochs[tp] = Epoch(
            tp,
            next(self._numbers),
            Tracker(start, finished),
            committed=(start, metadata) if is_committed and start is not None else None,
            gate=CommitGate(self._offset_of) if self._ahead else None,
            restored_up_to=restored_up_to,
            map_room=MapRoom(highest_taken=restored_up_to, ranges=len(finished)),
        )
        self.commanded.began(epoch)
        return epoch

    def stop_dispatching(self, tps: Iterable[TopicPartition]) -> list[Epoch]:
        """Start no further record of these. The outcomes of records that workers have still count."""
        stopped = [self._epochs[tp] for tp in tps if tp in self._epochs]
        for epoch in stopped:
            epoch.stop()
        self.commanded.stopped(stopped)
        return stopped

    def close(self, tps: Iterable[TopicPartition]) -> list[Epoch]:
        """End these epochs. Outcomes that still arrive for them are dropped."""
        closed = self.stop_dispatching(tps)
        for epoch in closed:
            epoch.end()
            del self._epochs[epoch.tp]
            self._busy_epochs.discard(epoch)
            self.in_flight.settled += epoch.tracker.unfinished
            self.in_flight.excess -= epoch.large_values.remove([*epoch.large_values.excesses])
        self._schedule.forget_ended()
        return closed

    # Records arrive and go to workers.

    def deliver(self, tp: TopicPartition, records: Sequence[AnyRecord], excesses: Mapping[int, int] = NOTHING) -> None:
        """Put records of one partition on their lanes; drop them if this member no longer owns the partition.

        ``excesses`` are those of large values, as ``InFlight.excesses`` returns them.
        """
        self.in_flight.delivered += len(records)
        epoch = self._open_epoch(tp)
        if epoch is None:
            self.in_flight.settled += len(records)
            return
        self._busy_epochs.add(epoch)
        offsets = list(map(self._offset_of, records))
        fresh = epoch.tracker.deliver(offsets)
        if len(fresh) < len(records):
            self.in_flight.settled += len(records) - len(fresh)
            wanted = set(fresh)
            records = [record for record, offset in zip(records, offsets, strict=True) if offset in wanted]
        if excesses:
            taken = {offset: excesses[offset] for offset in fresh if offset in excesses}
            self.in_flight.excess += epoch.large_values.add(taken)
        if epoch.gate is None:
            self._schedule.deliver(epoch, records)
        else:
            epoch.gate.hold(records)

    def deliver_later(self, tp: TopicPartition, record: AnyRecord, at: float) -> None:
        """Like ``deliver``, for a record that failed in an earlier epoch: its next attempt is due at this time."""
        self.in_flight.delivered += 1
        epoch = self._open_epoch(tp)
        if epoch is not None and epoch.tracker.deliver([self._offset_of(record)]):
            self._busy_epochs.add(epoch)
            self._schedule.deliver_later(epoch, record, at)
        else:
            self.in_flight.settled += 1

    def deliver_returned(
        self,
        tp: TopicPartition,
        records: Sequence[Returned],
        now: float,
        excesses: Mapping[int, int] = NOTHING,
    ) -> list[Returned]:
        """Like ``deliver``, for a retry topic. Returns the records that were put on lanes.

        From the first record that is not due yet, the records are dropped; they are fetched again when it is due.
        Records of other groups are skipped, as if they did not exist.
        """
        epoch = self._open_epoch(tp)
        if epoch is None:
            self.in_flight.dropped(len(records))
            return []
        due = list(takewhile(lambda each: each.said.wait <= 0, records))
        own = [each for each in due if each.said.of_this_group]
        for each in own:
            offset = self._offset_of(each.record)
            # The record may have failed here since it was written, and been dropped by back-pressure after that.
            epoch.failures[offset] = max(each.said.failures, epoch.failures.get(offset, 0))
        self.in_flight.dropped(len(records) - len(own))
        if excesses:
            kept = {self._offset_of(each.record) for each in own}
            excesses = {offset: excess for offset, excess in excesses.items() if offset in kept}
        self.deliver(tp, [each.record for each in own], excesses)
        if len(due) < len(records):
            waits = records[len(due)]
            self._backpressure.sleep(epoch, self._offset_of(waits.record), now=now, wait=waits.said.wait)
        elif due:
            epoch.tracker.reach(self._offset_of(due[-1].record) + 1)
        return own

    def _open_epoch(self, tp: TopicPartition) -> Epoch | None:
        """The epoch that accepts fetched records of this partition; None if they must be dropped."""
        epoch = self._epochs.get(tp)
        return epoch if epoch is not None and epoch.is_open else None

    def reach(self, tp: TopicPartition, offset: int) -> None:
        """The fetcher has read the partition up to its end, which is this offset."""
        if (epoch := self._open_epoch(tp)) is not None:  # an epoch that drops records has not reached the end
            epoch.tracker.reach(offset)

    def take(self, now: float, size: int) -> list[list[LaneRun]]:
        """Take runs that may start now: a bundle of about ``size`` records for each free worker."""
        if self._pausing is not None and self._pausing.is_open:
            return self._probe(self._pausing, now)
        self._schedule.mix_or_split(self._epochs.values(), size)
        bundles = self._schedule.take(now, size)
        if self._pausing is not None:
            self._outcomes.begun(bundles, self._pausing, now)
        return bundles

    def _probe(self, circuit: PausingCircuit, now: float) -> list[list[LaneRun]]:
        """While the breaker pauses the handler: take one record now and then."""
        bundles = self._schedule.take_one(now) if circuit.takes_probe(now) else []
        if bundles:
            circuit.probing(now)
        return bundles

    @property
    def busy(self) -> int:
        """How many bundles were taken and not released yet."""
        return self._schedule.busy

    def set_concurrency(self, concurrency: int, ahead: int = 0) -> None:
        """So many bundles may run at once from now on, and ``ahead`` more may be queued for busy workers."""
        self._schedule.set_concurrency(concurrency, ahead)

    def set_rate(self, limit: RateLimit | None) -> None:
        """Keep this rate from now on; None ends it."""
        self._schedule.rates.set(limit)

    @property
    def waiting_for_rate(self) -> int:
        """How many lanes could begin a record if their rate let them."""
        return self._schedule.rates.waiting

    def take_most_waiting_for_rate(self) -> int:
        """The most that have waited at once since the last call."""
        return self._schedule.rates.take_most_waiting()

    def release(self) -> None:
        """A worker finished a bundle, so another bundle may be taken."""
        self._schedule.release()

    def stop_lingering(self) -> None:
        """Hand out incomplete batches at once, because no more records will arrive."""
        self._schedule.stop_lingering()

    def backoffs(self) -> list[tuple[float, Lane]]:
        """The lanes that wait for a retry in memory, and when each is due."""
        return self._schedule.backoffs()

    def next_due(self) -> float | None:
        """When the next retry or rate is due, in memory or in a retry topic, or the ``linger`` of a batch is over."""
        if self._pausing is None and not self._has_retry_topics:
            return self._schedule.next_due()
        due = [self._schedule.next_due()]
        if self._pausing is not None and self._pausing.is_open:
            # Nothing starts before the breaker's next try.
            probe_at, retry_at = self._pausing.probe_at, due[0]
            due = [probe_at if self._schedule.has_ready else retry_at and max(probe_at, retry_at)]
        if self._has_retry_topics:
            due += [each.fetch_state.wake_at for each in self._epochs.values() if not each.is_ending]
        return min((at for at in due if at is not None), default=None)

    # Workers, users and the broker report.

    def report(self, results: Iterable[Result], now: float) -> Effects:
        """Workers have these outcomes of runs."""
        effects = self._outcomes.report(results, now)
        self._busy_epochs.difference_update([each for each, _ in effects.finished if not each.tracker.unfinished])
        return effects

    def ack(self, tp: TopicPartition, offset: int, record: AnyRecord) -> Effects:
        """The user acknowledges this record. It has no effect for a record that an earlier epoch read."""
        return self._outcomes.ack(tp, offset, record)

    def ack_below(self, tp: TopicPartition, offset: int) -> Effects:
        """The user acknowledges all handled records below this offset."""
        return self._outcomes.ack_below(tp, offset)

    def acknowledge(self, send: Send) -> bool:
        """The broker has acknowledged a produced record. Returns False if its epoch is over, so it has no effect."""
        return self._outcomes.acknowledge(send)

    def abandon(self, send: Send) -> None:
        """This record cannot be produced now. The consumed record stays unfinished, so Kafka redelivers it."""
        self._outcomes.abandon(send)

    def refuse(self, send: Send, failure: Failed) -> Effects:
        """The broker will never accept this record, so the consumed record has failed for good."""
        return self._outcomes.refuse(send, failure)

    def is_current(self, epoch: Epoch) -> bool:
        """Whether outcomes of this epoch still count."""
        return self._outcomes.is_current(epoch)

    # Commits and back-pressure.

    def commits(self, *, known_too: bool = False) -> dict[TopicPartition, tuple[int, str]]:
        """The commit point and offset map of each partition where they differ from what the broker has.

        With ``known_too``, of every partition. Point and map are one snapshot.
        """
        snapshots = ((epoch, epoch.to_commit()) for epoch in self._epochs.values())
        return {e.tp: now for e, now in snapshots if now is not None and (known_too or now != e.committed)}

    def committed(self, tp: TopicPartition, commit: tuple[int, str]) -> None:
        """The broker accepted this commit."""
        epoch = self._epochs.get(tp)
        if epoch is None:
            return
        epoch.committed = commit
        if epoch.gate is not None:
            self._schedule.deliver(epoch, epoch.gate.accept(commit[0]))

    def committing(self, commits: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """These commits were sent; a call of ``committed`` or ``refused`` follows for each."""
        for epoch in self._epochs.values():
            if epoch.gate is not None and epoch.tp in commits:
                epoch.gate.ask(commits[epoch.tp][0])

    def refused(self, tp: TopicPartition) -> None:
        """The broker refused a commit of this partition, or its answer is unknown."""
        epoch = self._epochs.get(tp)
        if epoch is not None and epoch.gate is not None:
            epoch.gate.refuse()

    @property
    def waits_for_commit(self) -> bool:
        """At most once: whether records wait at a gate for the next commit."""
        return self._ahead and any(
            epoch.gate and not epoch.gate.is_shut and not epoch.is_paused for epoch in self._epochs.values()
        )

    def caught_up(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether every owned partition is finished up to its end in ``ends``."""
        return all(epoch.has_reached(ends.get(epoch.tp, 0)) for epoch in self._epochs.values())

    def balance(self, now: float) -> tuple[list[Pause], list[Epoch]]:
        """Which partitions to pause and which to resume."""
        if not (self._backpressure.has_to_act(self.in_flight) or self.commanded.has_any):
            return [], []
        balanced = self._backpressure.turn(self._epochs.values(), now)
        self.in_flight.settled += balanced.dropped
        self.in_flight.excess -= balanced.dropped_excess
        return balanced.pause, balanced.resume

    def rewound(self, tp: TopicPartition) -> None:
        """The fetcher has seeked back, so the records that arrive from now on count."""
        if (epoch := self._epochs.get(tp)) is not None:
            self._backpressure.rewound(epoch)
