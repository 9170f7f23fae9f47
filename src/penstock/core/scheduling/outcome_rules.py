"""What follows from the outcomes of records: which are finished, produced, retried or dead-lettered."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.core.failures.breaker import Circuit
from penstock.core.failures.outcome import (
    DONE,
    WITHOUT_CALL,
    Delayed,
    Done,
    Duplicate,
    Expired,
    Failed,
    Held,
    Outcome,
    Postpone,
    ProducerRecord,
    Skipped,
    ToDeadLetter,
    TryAgain,
    decide,
    decide_delay,
)
from penstock.core.failures.pausing_circuit import PausingCircuit
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.effects import Attempt, Effects, Result, Send, sends_of
from penstock.core.scheduling.in_flight import InFlightCount
from penstock.core.scheduling.lanes import AnyRecord, Epoch, LaneRun
from penstock.core.scheduling.schedule import Again, Schedule

# Only runs of at least so many records are checked for consecutive offsets. Runs of mixed lanes and of partitions are
# that long; those of single keys are short.
_LONG = 32

DeadLetterOf = Callable[[Attempt, Failed], ProducerRecord]
RetryRecordOf = Callable[[Attempt, Failed | Delayed, float], ProducerRecord]


class OutcomeRules:
    """Takes what workers, users and the broker report about records, and finishes the records or derives effects.

    It owns ``Epoch.pending``, and finishes offsets in the tracker.

    Args:
        epochs: The epochs whose outcomes count. ``Dispatch`` adds and removes them.
        schedule: Gets the records to retry, and learns which runs ended.
        in_flight: Learns which records are no longer in flight.
        dead_letter_of, retry_record_of, retry_topics, circuit, random, offset_of: See ``Dispatch``.
    """

    def __init__(
        self,
        epochs: Mapping[TopicPartition, Epoch],
        schedule: Schedule,
        in_flight: InFlightCount,
        *,
        dead_letter_of: DeadLetterOf | None,
        retry_record_of: RetryRecordOf | None,
        retry_topics: Sequence[float],
        circuit: Circuit | None,
        random: Callable[[], float],
        offset_of: Callable[[AnyRecord], int],
    ) -> None:
        self._epochs = epochs
        self._schedule = schedule
        self._in_flight = in_flight
        self._dead_letter_of = dead_letter_of
        self._retry_record_of = retry_record_of
        self._retry_topics = retry_topics
        self._circuit = circuit
        self._pausing = circuit if isinstance(circuit, PausingCircuit) else None
        self._random = random
        self._offset_of = offset_of

    def is_current(self, epoch: Epoch) -> bool:
        """Whether outcomes of this epoch still count."""
        # By identity: this member may own the partition again, in a new epoch.
        return self._epochs.get(epoch.tp) is epoch

    # Workers get records, and report.

    def begun(self, bundles: Iterable[Sequence[LaneRun]], circuit: PausingCircuit, now: float) -> None:
        """Workers get these runs, and a breaker that pauses may doubt some of their records."""
        for run in (run for bundle in bundles for run in bundle if run.epoch.suspected_at):
            suspected_at = run.epoch.suspected_at
            for offset in suspected_at.keys() & map(self._offset_of, run.records):
                suspected_at[offset] = circuit.suspected_at(suspected_at[offset], now)

    def report(self, results: Iterable[Result], now: float) -> Effects:
        """Workers have these outcomes of runs."""
        effects = Effects()
        finished: dict[Epoch, list[AnyRecord]] = {}
        schedule, circuit = self._schedule, self._circuit
        for run, outcomes, last in results:
            epoch, count = run.lane.epoch, len(outcomes)
            all_done = last and 0 < count == len(run.records) and outcomes.count(DONE) == count
            if all_done and (epoch in finished or self.is_current(epoch)):
                # The usual case: every record of the run succeeded, and this member still owns the partition.
                if count >= _LONG and (offsets := self._consecutive_offsets(run)):
                    self._finish(epoch, offsets, effects)
                    effects.finished.append((epoch, run.records))
                else:
                    finished.setdefault(epoch, []).extend(run.records)
                schedule.complete(run)
                if circuit is not None:
                    self._count_finished(count)
                continue
            done = schedule.collect(run, count)
            retries: list[Again] = []
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

    def _consecutive_offsets(self, run: LaneRun) -> range | None:
        """The offsets of this run if they are consecutive, else None.

        Then only the first and the last are read: to read each again would take a fifth of what a no-op handler costs.
        """
        first, last = self._offset_of(run.records[0]), self._offset_of(run.records[-1])
        # Only the runs of ordered lanes have ascending offsets.
        return range(first, last + 1) if run.lane.ordered and last - first == len(run.records) - 1 else None

    def _finish(self, epoch: Epoch, offsets: Sequence[int], effects: Effects) -> None:
        epoch.tracker.finish_all(offsets)
        epoch.map_room.add_finished(len(offsets))
        self._in_flight.settled += len(offsets)
        if epoch.large_values.excesses:
            self._in_flight.excess -= epoch.large_values.remove(offsets)
        if epoch.pending.acked_early:
            for offset in offsets:
                epoch.pending.acked_early.pop(offset, None)
        if epoch.failures:
            for offset in offsets:
                failures = epoch.failures.pop(offset, 0)
                epoch.suspected_at.pop(offset, None)
                if failures:
                    effects.again[epoch, offset] = failures + 1
        self._schedule.add_ready(epoch.unpark())

    def _settle(
        self,
        epoch: Epoch,
        records: Sequence[AnyRecord],
        outcomes: Sequence[Outcome],
        *,
        finished: list[AnyRecord],
        effects: Effects,
        now: float,
    ) -> list[Again]:
        """Derive the effects of these outcomes. Returns the records to try again, each with its time."""
        retries = []
        for record, outcome in zip(records, outcomes, strict=True):
            if outcome is DONE:
                finished.append(record)
                self._count_finished(1)
                continue
            offset = self._offset_of(record)
            tried = Attempt(epoch, record, offset, epoch.attempt_at(offset))
            if isinstance(outcome, Done):
                if outcome.outputs:
                    epoch.pending.sending += 1
                    effects.sends += sends_of(tried, outcome.outputs)
                else:
                    finished.append(record)
                    self._count_finished(1)
            elif isinstance(outcome, Held):
                if epoch.pending.acked_early.pop(offset, None) is record:
                    finished.append(record)
                    self._count_finished(1)
                else:
                    epoch.pending.unacked[offset] = record
            elif isinstance(outcome, Skipped):
                finished.append(record)
                self._count_finished(1)
                _note_skipped(tried, outcome, effects)
                if self._pausing is not None and isinstance(outcome, WITHOUT_CALL):
                    self._pausing.learned_nothing(now)
            else:
                delay = self._put_off(tried, outcome, effects, now)
                if delay is not None:
                    retries.append((record, now + delay))
        return retries

    def _put_off(self, tried: Attempt, outcome: Failed | Delayed, effects: Effects, now: float) -> float | None:
        if self._pausing is not None and not _may_trip(outcome):
            self._pausing.learned_nothing(now)
        if isinstance(outcome, Delayed):
            return self._delay(tried, outcome, effects)
        return self._fail(tried, outcome, effects, now)

    def _fail(self, tried: Attempt, failure: Failed, effects: Effects, now: float | None = None) -> float | None:
        """Decide what follows from a failure. Returns the seconds until the next attempt in memory, if there is one.

        Without ``now``, the record cannot be attempted again.
        """
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
            else:  # the handler was not called, so this does not count as an attempt
                effects.blocked.append((tried, failure, decision.delay))
            return decision.delay
        if isinstance(decision, Postpone) and self._retry_record_of is not None:
            self._postpone(tried, failure, decision.delay, self._retry_record_of, effects)
        elif isinstance(decision, ToDeadLetter) and self._dead_letter_of is not None:
            if self._pausing is not None and now is not None and _may_trip(failure):
                wait = self._withhold(tried, failure, self._pausing, effects, now)
                if wait is not None:
                    return wait
            elif not self._lets_through(failure):
                effects.halted = effects.halted or (tried, failure)
                return None
            self._send(Send(tried, self._dead_letter_of(tried, failure), failure), effects)
        else:
            effects.halted = effects.halted or (tried, failure)
        return None

    def _lets_through(self, failure: Failed) -> bool:
        """Whether the breaker lets this record become a dead letter, and does not stop the app."""
        circuit = self._circuit
        if circuit is None:
            return True
        if circuit.pauses or not failure.trips:
            circuit.finished(1)
            return True
        return circuit.lets_through()

    def _withhold(
        self, tried: Attempt, failure: Failed, circuit: PausingCircuit, effects: Effects, now: float
    ) -> float | None:
        """Let the record wait if it may fail because of what the handler calls. Returns for how long, else None."""
        epoch, offset = tried.epoch, tried.offset
        reason = f"{failure.error_type}: {failure.message}"
        wait = circuit.withholds((epoch.tp, offset), epoch.suspected_at.get(offset), now, reason=reason)
        if wait is None:
            return None
        epoch.failures[offset] = tried.attempt
        epoch.suspected_at[offset] = now
        effects.retried.append((tried, failure, max(wait, circuit.probe_at - now) if circuit.is_open else wait))
        return wait

    def _delay(self, tried: Attempt, delayed: Delayed, effects: Effects) -> float | None:
        """Let the record wait, which is no attempt. Returns the seconds until it is due, if it waits in memory."""
        decision = decide_delay(delayed, retry_topics=self._retry_topics)
        if isinstance(decision, Postpone) and self._retry_record_of is not None:
            self._postpone(tried, delayed, decision.delay, self._retry_record_of, effects)
            return None
        effects.delayed.append((tried, delayed))
        return delayed.seconds

    def _postpone(
        self, tried: Attempt, why: Failed | Delayed, delay: float, record_of: RetryRecordOf, effects: Effects
    ) -> None:
        self._send(Send(tried, record_of(tried, why, delay), why, delay), effects)

    def _count_finished(self, count: int) -> None:
        if self._circuit is not None:
            self._circuit.finished(count)

    @staticmethod
    def _send(send: Send, effects: Effects) -> None:
        send.tried.epoch.pending.sending += 1
        effects.sends.append(send)

    # Users acknowledge.

    def ack(self, tp: TopicPartition, offset: int, record: AnyRecord) -> Effects:
        """The user acknowledges this record. It has no effect for a record that an earlier epoch read."""
        effects = Effects()
        epoch = self._epochs.get(tp)
        if epoch is None:
            return effects
        if epoch.pending.unacked.get(offset) is record:
            self._finish_unacked(epoch, [offset], effects)
        elif epoch.tracker.is_unfinished(offset):  # its handler has not returned yet, or its outcome has not arrived
            epoch.pending.acked_early[offset] = record
        return effects

    def ack_below(self, tp: TopicPartition, offset: int) -> Effects:
        """The user acknowledges all handled records below this offset."""
        effects = Effects()
        epoch = self._epochs.get(tp)
        if epoch is not None:
            self._finish_unacked(epoch, [unacked for unacked in epoch.pending.unacked if unacked < offset], effects)
        return effects

    def _finish_unacked(self, epoch: Epoch, offsets: Sequence[int], effects: Effects) -> None:
        effects.finished.append((epoch, [epoch.pending.unacked.pop(offset) for offset in offsets]))
        self._count_finished(len(offsets))
        self._finish(epoch, offsets, effects)

    # The broker acknowledges or refuses.

    def acknowledge(self, send: Send) -> bool:
        """The broker has acknowledged a produced record. Returns whether that finishes the consumed record.

        It does not if the broker has not acknowledged another output of that record, or if the epoch is over.
        """
        if send.outputs is not None and not send.outputs.acknowledge():
            return False
        epoch, offset = send.tried.epoch, send.tried.offset
        epoch.pending.sending -= 1
        if not self.is_current(epoch):
            return False
        epoch.tracker.finish(offset)
        epoch.failures.pop(offset, None)
        epoch.suspected_at.pop(offset, None)
        epoch.pending.acked_early.pop(offset, None)
        epoch.map_room.add_finished(1)
        self._in_flight.settled += 1
        self._in_flight.excess -= epoch.large_values.remove([offset])
        if send.failure is None:
            self._count_finished(1)
        self._schedule.add_ready(epoch.unpark())
        return True

    def abandon(self, send: Send) -> None:
        """This record cannot be produced now. The consumed record stays unfinished, so Kafka redelivers it."""
        if send.outputs is None or send.outputs.give_up():
            send.tried.epoch.pending.sending -= 1

    def refuse(self, send: Send, failure: Failed) -> Effects:
        """The broker will never accept this record, so the consumed record has failed for good.

        Its other outputs do not matter any more: they may be in the topic, and their acknowledgements have no effect.
        """
        tried, effects = send.tried, Effects()
        if send.outputs is not None and not send.outputs.give_up():
            return effects
        tried.epoch.pending.sending -= 1
        if self.is_current(tried.epoch):
            self._fail(tried, failure, effects)
        return effects


def _may_trip(outcome: Failed | Delayed) -> bool:
    """Whether a pausing breaker counts this: what the handler calls may be down."""
    return isinstance(outcome, Failed) and outcome.trips and outcome.is_of_the_call


def _note_skipped(tried: Attempt, outcome: Skipped, effects: Effects) -> None:
    if isinstance(outcome, Expired):
        effects.expired.append((tried, outcome.reason))
    elif isinstance(outcome, Duplicate):
        effects.duplicates.append((tried, outcome.reason))
    else:
        effects.skipped.append((tried, outcome.reason))
