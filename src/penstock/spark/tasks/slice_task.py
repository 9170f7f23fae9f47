"""Runs the handler on slices, in one of Spark's Python workers, by the rules that the local engine uses too.

The task's thread reads records, hands them to workers, and writes what follows from their outcomes. When its time is
over, it starts no further record: what is finished by then counts, and the next slice begins with the rest.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.app import Handler, WriteValues, halt_error, stop_error
from penstock.app.attempts.failed_records import FailedRecords
from penstock.app.attempts.work import Work
from penstock.app.dispatching.breaker_watch import BreakerWatch
from penstock.app.dispatching.handler_dispatch import dispatch_of
from penstock.app.dispatching.offset_map_watch import OffsetMapWatch
from penstock.app.dispatching.reporter import Reporter
from penstock.app.dispatching.running_concurrency import RunningConcurrency
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.outcome import DONE, Done, Failed, Outcome
from penstock.core.failures.pausing_circuit import PausingCircuit
from penstock.core.progress.offset_map import UnreadableMapError, decode
from penstock.core.progress.slices import Reached, Slice
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.auto_concurrency import AutoConcurrency
from penstock.core.scheduling.bundle_size import BundleSize
from penstock.core.scheduling.effects import Attempt, Effects, Result, Send, sends_of
from penstock.core.scheduling.in_flight import HandedOver, InFlight
from penstock.core.scheduling.lanes import AnyRecord, Epoch, LaneRun
from penstock.errors import HandlerError
from penstock.kafka import MESSAGES
from penstock.kafka.client.refused_output import final_failure, undeliverable
from penstock.spark.tasks.key_shares import own_share
from penstock.spark.tasks.outputs import OutputList, Outputs
from penstock.spark.tasks.record_waits import take_over, waits_of
from penstock.spark.tasks.slice_reader import SliceReader
from penstock.spark.tasks.workers import TaskWorkers

MEMBER = "spark"
"""The member name in events of records: the driver is the member, and tasks work for it."""

# How long a read waits for a first record, and how long it waits while workers are busy.
_POLL_SECONDS, _BUSY_POLL_SECONDS = 0.05, 0.005
# How often the task collects outcomes of workers that are in the middle of a bundle. If a worker takes longer than
# this, other workers get the rest of its bundle.
_COLLECT_SECONDS = 0.05
# Without any record for so long, the slice ends: the broker does not answer, and the driver knows more.
_SILENT_SECONDS = 10.0
# If all that is left waits for longer than this, the slice ends, and the next one begins when a record is due.
_LONG_WAIT_SECONDS = 1.0
# A slice returns at most so many events of failed records; the counts include all.
_MOST_EVENTS = 1_000


@dataclass
class SliceTask:
    """Call ``run`` once; then ``reached`` and ``counts`` say what is done.

    ``clock`` is for timers, ``wall_clock`` for times that other processes read.
    """

    handler: Handler
    slices: Sequence[Slice]
    reader: SliceReader
    outputs: Outputs
    make_workers: Callable[[WriteValues], TaskWorkers]
    circuit: Circuit | None = None
    auto: AutoConcurrency | None = None
    per_record: bool = False
    brokers: str = ""
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        handler = self.handler
        self._written = OutputList(self.outputs)
        self.workers = self.make_workers(self._written.write_values)
        self._failed_records = FailedRecords(handler, MESSAGES, self.wall_clock)
        self._reporter = Reporter(handler, self._emit, member=MEMBER, adapter=MESSAGES, per_record=self.per_record)
        self._in_flight = InFlight(handler.max_in_flight, handler.max_in_flight_bytes)
        self._dispatch = dispatch_of(
            handler, MESSAGES, self._reporter, self._failed_records,
            concurrency=self.workers.width, circuit=self.circuit, random=random.random,
        )  # fmt: skip
        self._offset_maps = OffsetMapWatch(self._reporter)
        self._concurrency: RunningConcurrency | None = None
        if self.workers.width > 1:
            self._concurrency = RunningConcurrency(handler, self._dispatch, self._reporter, self.auto, self.clock)
            self._concurrency.attach(self.workers)
        self._breaker = BreakerWatch(self.circuit, self._reporter, self.clock)
        self._may_end_early = not handler.is_at_most_once  # then all of the slice is committed already
        self._clocks_differ = self.wall_clock() - self.clock()
        self._slices = {each.tp: each for each in self.slices}
        self._epochs = {each.tp: self._begin(each) for each in self.slices}
        self._delivered = HandedOver()
        self._bundle_size = BundleSize()
        self._works: set[Work] = set()
        self._collect_at = 0.0
        self._due: dict[tuple[TopicPartition, int], float] = {}
        self._again_at: dict[TopicPartition, float] = {}
        self._all_wait = False  # what is left waits for a retry, or behind a record that does
        self._sent: list[Send] = []
        # A breaker may stop the app instead of writing a dead letter, so the lane waits for the decision.
        self._has_dead_letter = handler.dead_letter is not None and self.circuit is None
        self.halted: HandlerError | None = None
        """The error of the record that stops the app, if there is one."""

    def _begin(self, each: Slice) -> Epoch:
        try:
            finished = decode(each.start, each.metadata)
        except UnreadableMapError as error:
            finished = []
            self._reporter.ignored_metadata(each.tp, each.start, str(error))
        epoch = self._dispatch.assign(each.tp, each.start, each.metadata, finished)
        epoch.number = each.epoch
        take_over(epoch, each.waiting, ahead=self._clocks_differ)
        return epoch

    # What is done.

    @property
    def counts(self) -> Counts:
        found = self._reporter.counts
        return Counts(found.read, found.written + self._written.count, found.dead_lettered, found.skipped)

    @property
    def route_counts(self) -> dict[str, Counts]:
        """The counts of each handler that shares the member."""
        return {name: counts + Counts() for name, counts in self._reporter.route_counts.items()}

    def reached(self, tp: TopicPartition) -> Reached:
        epoch = self._epochs[tp]
        read_to = self.reader.read_to[tp]
        epoch.tracker.reach(read_to)
        point, metadata = self._dispatch.commits(known_too=True)[tp]
        waiting = waits_of(epoch, self._due, ahead=self._clocks_differ)
        if epoch.tracker.unfinished > len(waiting) and not self._all_wait:
            # Time was over before these records were begun: the next slice reads them again.
            read_to = next(at for at in range(point, read_to) if at not in waiting and epoch.tracker.is_unfinished(at))
        again_at = self._again_at.get(tp, 0.0)
        if isinstance(self.circuit, PausingCircuit) and self.circuit.is_open:
            again_at = max(again_at, self.circuit.probe_at + self._clocks_differ)
        return Reached(point, metadata, max(point, read_to), waiting, again_at)

    # The run.

    def run(self) -> None:
        """Handle the slices. When this returns, the broker has every output of what is finished."""
        deadline = self.clock() + min(each.seconds for each in self.slices)
        try:
            self._handle(deadline)
            self._drain()
        finally:
            self._dispatch.stop_dispatching(self._epochs)
            self.workers.close(self.handler.drain_timeout)
            if self._concurrency is not None:
                self._concurrency.report()
        self._flush()

    def _handle(self, deadline: float) -> None:
        heard, clock, reader = self.clock(), self.clock, self.reader
        while self.halted is None:
            now = clock()
            if now >= deadline:
                return
            room = 0 if reader.is_done else self._dispatch.in_flight.room(self._delivered)
            arrived = room > 0 and self._read(room, 0 if self._works else min(_POLL_SECONDS, deadline - now))
            if arrived:
                heard = now
            if reader.is_done:
                self._dispatch.stop_lingering()
            handed_out = self._hand_out()
            left = self._left
            if not left and (reader.is_done or (now - heard > _SILENT_SECONDS and self._may_end_early)):
                return
            if not handed_out and self._only_waits(deadline, reads=room > 0):
                # While the breaker pauses, records that were not begun are read again when it tries one.
                self._all_wait = not self._breaker.is_open
                return
            self._let_outcomes_gather()
            self._report(self.workers.wait(self._patience(deadline, reads=room > 0, arrived=arrived)))

    def _let_outcomes_gather(self) -> None:
        """While works are queued, no worker waits for this thread. Outcomes cost less if they come together."""
        if self._concurrency is not None and (breath := self._concurrency.breath(self._bundle_size.bundle_seconds)):
            time.sleep(breath)

    @property
    def _left(self) -> int:
        """How many records are read and not finished."""
        return self._delivered.records - self._dispatch.settled

    def _only_waits(self, deadline: float, *, reads: bool) -> bool:
        if not self._may_end_early or self._works or (reads and not self.reader.is_done):
            return False
        due = self._dispatch.next_due()
        return due is not None and due > min(deadline, self.clock() + _LONG_WAIT_SECONDS)

    def _patience(self, deadline: float, *, reads: bool, arrived: bool) -> float:
        """Return how long the task can wait for its workers."""
        if arrived:
            return 0.0
        if reads:
            return _BUSY_POLL_SECONDS if self._works else 0.0
        due = [deadline, self._dispatch.next_due(), self._collect_at if self._works else None]
        return max(0.0, min(at for at in due if at is not None) - self.clock())

    def _drain(self) -> None:
        """Start no further record, and wait for those in progress."""
        self._dispatch.stop_dispatching(self._epochs)
        deadline = self.clock() + self.handler.drain_timeout
        while self._works and self.clock() < deadline:
            self._report(self.workers.wait(_COLLECT_SECONDS))

    # Records come in.

    def _read(self, room: int, seconds: float) -> bool:
        arrived = self.reader.read(room, seconds)
        for tp, batch in arrived:
            ours = own_share(self.handler, self._slices[tp], batch)
            excesses = self._in_flight.excesses(ours, offset_of=MESSAGES.offset_of, size_of=len)
            self._delivered.add(len(ours), excesses.values())
            self._dispatch.in_flight.received(sum(excesses.values()))
            if tp[0] in self.handler.delayed:
                self._deliver_returned(tp, ours, excesses)
            else:
                self._deliver(tp, ours, excesses)
        return bool(arrived)

    def _deliver(self, tp: TopicPartition, batch: Sequence[AnyRecord], excesses: Mapping[int, int]) -> None:
        waiting = self._slices[tp].waiting
        if not waiting:
            self._dispatch.deliver(tp, batch, excesses)
            return
        before: list[AnyRecord] = []
        for message in batch:
            offset = MESSAGES.offset_of(message)
            if offset not in waiting:
                before.append(message)
                continue
            self._dispatch.deliver(tp, before, excesses)
            before = []
            due = waiting[offset].due
            self._due[tp, offset] = due
            self._dispatch.deliver_later(tp, message, due - self._clocks_differ)
        self._dispatch.deliver(tp, before, excesses)

    def _deliver_returned(self, tp: TopicPartition, batch: Sequence[AnyRecord], excesses: Mapping[int, int]) -> None:
        """Deliver records of a retry topic, up to the first that is not due yet."""
        now, epoch = self.clock(), self._epochs[tp]
        begun = self._dispatch.deliver_returned(tp, self._failed_records.read_returned(tp, batch), now, excesses)
        damaged = [each for each in begun if each.said.problem]
        if damaged:
            offset = MESSAGES.offset_of(damaged[0].record)
            self._reporter.damaged_headers(tp, offset, len(damaged), damaged[0].said.problem)
        wake_at = epoch.fetch_state.wake_at
        if wake_at is not None:
            self._again_at[tp] = self.wall_clock() + wake_at - now
            position = epoch.tracker.position
            self.reader.read_to[tp] = self._slices[tp].start if position is None else position
            self.reader.stop(tp)

    # Records go to workers, and outcomes come back.

    def _hand_out(self) -> bool:
        bundles = self._dispatch.take(self.clock(), self._bundle_size.size)
        if self._concurrency is not None:
            self._concurrency.busy = self._dispatch.busy
        works = [Work(runs, has_dead_letter=self._has_dead_letter, clock=self.clock) for runs in bundles]
        self._works.update(works)
        self._reporter.dispatched(works)
        self.workers.submit(works)
        return bool(works)

    def _report(self, ended: list[Work]) -> None:
        results: list[Result] = []
        for work in ended:
            self._works.discard(work)
            self._dispatch.release()
            self._bundle_size.observe(work.attempted, work.seconds)
            if self._concurrency is not None:
                self._concurrency.worked(work)
            self._breaker.worked(work)
            results += work.collect()
        now = self.clock()
        if self._works and now >= self._collect_at:
            self._collect_at = now + _COLLECT_SECONDS
            results += self._collect(now)
            self._offset_maps.look(self._dispatch.epochs)
        if results:
            self._reporter.attempted(results)
            self._carry_out(self._dispatch.report(self._write(results), now))

    def _collect(self, now: float) -> list[Result]:
        """Return outcomes of workers that are still busy, and take back the records that slow ones have not started."""
        results: list[Result] = []
        for work in self._works:
            results += work.collect()
            if work.began is not None and now - work.began > _COLLECT_SECONDS:
                results += [(run, (), True) for run in work.take_back()]
        return results

    def _write(self, results: list[Result]) -> list[Result]:
        """Write the outputs. Their records count as done: the task returns only when the broker has everything."""
        passed: dict[int, int] = {}
        written = [(run, self._written_of(run, outcomes, passed), last) for run, outcomes, last in results]
        self._written.write()
        return written

    def _written_of(self, run: LaneRun, outcomes: Sequence[Outcome], passed: dict[int, int]) -> Sequence[Outcome]:
        first = passed.get(id(run), run.collected)
        passed[id(run)] = first + len(outcomes)
        # To compare a Done that has outputs costs more than to write it, so look at the first one before.
        if not outcomes or (outcomes[0] is DONE and outcomes.count(DONE) == len(outcomes)):
            return outcomes
        epoch, done, outputs = run.epoch, [], self._written
        outputs.begin(epoch)
        add_record, add_output = outputs.records.append, outputs.outputs.append
        for outcome, record in zip(outcomes, run.records[first:]):  # noqa: B905 - there may be more records
            if type(outcome) is Done and outcome.outputs:
                if len(outcome.outputs) == 1:
                    add_record(record)
                    add_output(outcome.outputs[0])
                else:
                    outputs.write()
                    outputs.begin(epoch)
                    add_record, add_output = outputs.records.append, outputs.outputs.append
                    offset = MESSAGES.offset_of(record)
                    tried = Attempt(epoch, record, offset, epoch.attempt_at(offset))
                    self.outputs.send(sends_of(tried, outcome.outputs))
                    outputs.count += len(outcome.outputs)
                if outcome.handler:
                    self._reporter.outputs_written(epoch, MESSAGES.offset_of(record), outcome)
                outcome = DONE  # noqa: PLW2901
            done.append(outcome)
        return done

    def _carry_out(self, effects: Effects) -> None:
        self._reporter.settled(effects)
        self._breaker.look()
        if effects.retried or effects.blocked:
            now = self.wall_clock()
            for tried, _, delay in (*effects.retried, *effects.blocked):
                self._due[tried.epoch.tp, tried.offset] = now + delay
        for tried, delayed in effects.delayed:
            self._due[tried.epoch.tp, tried.offset] = delayed.until
        for send in effects.sends:
            self.outputs.send([send])
            self._dispatch.acknowledge(send)
            self._sent.append(send)
        if effects.halted is not None:
            self._halt(*effects.halted)

    def _halt(self, tried: Attempt, failure: Failed) -> None:
        record = MESSAGES.to_record(tried.record, tried.attempt)
        self.halted = stop_error(self.handler, record, failure, self.circuit)

    # The end.

    def _flush(self) -> None:
        """Wait for the broker. A record whose output it refuses for good becomes a dead letter, or stops the app."""
        while refused := self.outputs.flush():
            for send, error in refused:
                failure = final_failure(send, error)
                if failure is None:
                    raise undeliverable(send, error, brokers=self.brokers)
                self._refuse(send, failure)
        for send in self._sent:
            self._reporter.delivered(send)
        self._sent.clear()

    def _refuse(self, send: Send, failure: Failed) -> None:
        if send.outputs is not None and not send.outputs.give_up():
            return  # another output of the same record was refused before
        if send.failure is None:
            self._written.count -= send.output_count
            self._reporter.outputs_refused(send)
        self._sent = [each for each in self._sent if each.tried is not send.tried]
        if self.handler.dead_letter is None:
            raise halt_error(
                self.handler.name, MESSAGES.to_record(send.tried.record, send.tried.attempt), failure,
                is_committed=self.handler.is_at_most_once,
            )  # fmt: skip
        letter = Send(send.tried, self._failed_records.dead_letter(send.tried, failure), failure)
        self.outputs.send([letter])
        self._sent.append(letter)

    def _emit(self, event: Event) -> None:
        if self.per_record or len(self.events) < _MOST_EVENTS:
            self.events.append(event)
