"""The dispatcher: the one thread that owns the state of a member's partitions."""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from queue import Empty

from penstock.app import Handler, RecordAdapter, breaker_error, halt_error
from penstock.core.failures.breaker import Circuit
from penstock.core.progress.lease import Lease
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.bundle_size import BundleSize, queued_ahead
from penstock.core.scheduling.dispatch import NOTHING, Dispatch
from penstock.core.scheduling.effects import Effects, Result, Send
from penstock.core.scheduling.hot_key_detector import HotKeyDetector
from penstock.core.scheduling.in_flight import HandedOver, InFlight
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.core.scheduling.work import Work
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.failed_records import FailedRecords
from penstock.engine.dispatch.partition_lifecycle import PartitionLifecycle
from penstock.engine.dispatch.protocols import FetcherSide, OutboxSide, TransactorSide
from penstock.engine.dispatch.stall_detector import StallDetector
from penstock.engine.dispatch.thread_messages import (
    Acked,
    AckedBelow,
    Approved,
    Assigned,
    Commit,
    CommitAnswer,
    Commits,
    Delivered,
    EngineError,
    Fetched,
    GetProgress,
    Inbox,
    Left,
    Lost,
    PartitionState,
    Pause,
    Refused,
    Resume,
    Revoking,
    Rewound,
    StartOver,
    Stop,
    Suspended,
    ToDispatcher,
    TransactionFailed,
    Undeliverable,
    Worked,
)
from penstock.engine.membership.catch_up import CatchUp
from penstock.engine.observe.health import InProgress
from penstock.engine.observe.member_metrics import Stopwatches
from penstock.engine.observe.reporter import Reporter
from penstock.engine.workers.worker_pools import Workers
from penstock.errors import PenstockError

# The longest wait for a message; timers that are due sooner shorten it.
_IDLE_SECONDS = 0.1
# A pause between turns while there is enough to do ahead of the workers.
_BREATH_SECONDS = 0.001
_OUTBOX_FULL_SECONDS = 0.02
_PROGRESS_SECONDS = 0.5
# How often outcomes are taken from workers that are still in the middle of a run.
_COLLECT_SECONDS = 0.1
# A worker that has a bundle for longer than this lets others have the rest of it.
_STUCK_SECONDS = 0.05
# Messages handled before timers get their turn again.
_MESSAGE_BURST = 256


class Dispatcher:
    """Takes every message of a member, asks the rules in ``core``, and carries out what they say.

    Whatever it does without a message depends on ``clock``; ``wall_clock`` is for people, and ``jitter`` gives numbers
    from 0 up to 1. The testing kit puts its own in their places.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        reporter: Reporter,
        *,
        adapter: RecordAdapter,
        lease: Lease,
        until: Mapping[TopicPartition, int] | None,
        catch_up: CatchUp | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        bundle_size: BundleSize | None = None,
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._lease = lease
        self._to_record, self._offset_of = adapter.to_record, adapter.offset_of
        self._failed_records = FailedRecords(handler, adapter, wall_clock)
        self._circuit = None if handler.breaker is None else Circuit(handler.breaker)
        self._inbox = inbox
        self._tell = reporter
        self._transactor: TransactorSide | None = None
        self._until = None if until is None else dict(until)
        self._catch_up = catch_up or CatchUp()
        self._dispatch = Dispatch(
            order=handler.order,
            null_keys_in_order=handler.null_keys_in_order,
            concurrency=handler.concurrency + queued_ahead(handler.concurrency),
            batch=handler.batch,
            linger=handler.linger,
            offset_of=adapter.offset_of,
            key_of=adapter.key_of,
            in_flight=InFlight(handler.max_in_flight, handler.max_in_flight_bytes),
            dead_letter_of=self._failed_records.dead_letter if handler.dead_letter else None,
            retry_record_of=self._failed_records.retry_record,
            retry_topics=sorted({topic.seconds for topic in handler.delayed.values()}),
            circuit=self._circuit,
            ahead=handler.is_at_most_once,
            random=jitter,
        )
        self._enough_ahead = queued_ahead(handler.concurrency) // 2
        self._next_progress = clock() + _PROGRESS_SECONDS
        self._next_collection = clock() + _COLLECT_SECONDS
        self._works: set[Work] = set()
        self._stall_detector = StallDetector(adapter.offset_of, clock())
        self._hot_lanes = HotKeyDetector()
        self.watches = Stopwatches(clock)
        self._results: list[Result] = []
        self._bundle_size = bundle_size or BundleSize()
        self._commits = CommitScheduler(
            handler, self._dispatch, reporter,
            lease=lease, watches=self.watches, clock=clock, carry=self._carry_commits,
        )  # fmt: skip
        self._lifecycle = PartitionLifecycle(self._dispatch, self._commits, reporter)
        self._stopping = False
        self._leaving = False
        self._leave_by = inf
        self.left = False
        self.error: PenstockError | None = None

    def in_flight_room(self, delivered: HandedOver, *, much: bool = False) -> int:
        """How many more records may come in, after these; called by the fetcher."""
        return self._dispatch.room(delivered, much=much)

    def health(self) -> tuple[float | None, int, tuple[InProgress, ...]]:
        """Seconds since something was finished, records in flight, what takes longest; read from other threads."""
        in_flight = sum(epoch.tracker.unfinished for epoch in self._dispatch.epochs)
        return (
            (self._clock() - self._stall_detector.finished_at if in_flight else None),
            in_flight,
            self._stall_detector.longest,
        )

    @property
    def has_joined(self) -> bool:
        """Whether the group has answered once, be it with nothing; read from other threads."""
        return self._lifecycle.assignments > 0

    def load(self) -> tuple[int, int, dict[TopicPartition, int]]:
        """Lanes with records, works that workers have or will have, bytes of offset maps; read from other threads."""
        epochs = self._dispatch.epochs
        maps = {epoch.tp: len(known[1]) for epoch in epochs if (known := epoch.committed) is not None}
        return sum(len(epoch.lanes) for epoch in epochs), self._dispatch.busy, maps

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """What the member owns, and how far that is; from the dispatcher's own thread."""
        return {epoch.tp: _survey(epoch) for epoch in self._dispatch.epochs}

    def attach(
        self, fetcher: FetcherSide, workers: Workers, outbox: OutboxSide, transactor: TransactorSide | None = None
    ) -> None:
        """Whom it talks to, from its first turn on; with a ``transactor``, which is the outbox then, exactly-once."""
        self._fetcher, self._workers, self._outbox, self._transactor = fetcher, workers, outbox, transactor
        self._lifecycle.attach(fetcher.ask, transactor)

    def _carry_commits(self, commits: Commits) -> None:
        if self._transactor is None:
            self._fetcher.ask(Commit(commits, self._lifecycle.assignments))
        else:
            self._transactor.commit(commits, self._lifecycle.losses)

    def run(self) -> None:
        """Until the member has left its group."""
        started = self._clock()
        while not self.left:
            self.turn(self._wait())
            if self._dispatch.busy - self._handler.concurrency > self._enough_ahead:
                # Works wait for workers, so nobody waits for this thread: let more come in, and take it at once.
                time.sleep(_BREATH_SECONDS)
        self._tell.stopped(self._clock() - started)

    def turn(self, wait: float) -> None:
        """Wait so long for a message, take what is there, and do all that is due."""
        self._take_messages(wait)
        self._advance(self._clock())

    def _take_messages(self, wait: float) -> None:
        try:
            self._take(self._inbox.get(timeout=wait) if wait > 0 else self._inbox.get_nowait())
            for _ in range(_MESSAGE_BURST):
                self._take(self._inbox.get_nowait())
        except Empty:
            pass
        self._report()

    def _wait(self) -> float:
        if self._outbox.is_full:
            return _OUTBOX_FULL_SECONDS
        return max(0.0, min(_IDLE_SECONDS, min(self._commits.next, self.next_due()) - self._clock()))

    @property
    def next_commit(self) -> float:
        """When what is finished by then is committed."""
        return self._commits.next

    def next_due(self) -> float:
        """When else there is something to do without a message: a retry, a batch, the last moment of a revoke."""
        work = self._dispatch.next_due()
        return min(inf if work is None else work, self._lifecycle.next_due())

    def _take(self, message: ToDispatcher) -> None:  # noqa: C901, PLR0912, PLR0915 - some lines for each kind of message
        match message:
            case Fetched(records, ends, excesses):
                self._lifecycle.unheard.difference_update(records, ends)
                for tp, batch in records.items():
                    if tp[0] in self._handler.delayed:
                        self._deliver_returned(tp, batch, excesses.get(tp, NOTHING))
                    else:
                        self._dispatch.deliver(tp, batch, excesses.get(tp, NOTHING))
                if excesses:
                    self._dispatch.took(sum(sum(each.values()) for each in excesses.values()))
                for tp, offset in ends.items():
                    self._dispatch.reach(tp, offset)
            case Worked(work):
                self._works.discard(work)
                self._dispatch.release()
                attempted = work.attempted
                self._bundle_size.observe(attempted, work.seconds)
                self.watches.worked(attempted, work.seconds)
                self._results.extend(work.collect())
            case Delivered(sends):
                self._acknowledge(sends)
            case Approved(send):
                if self._dispatch.is_current(send.tried.epoch):
                    self._acknowledge(self._outbox.send([send]))
            case Refused(send, failure):
                self._carry_out(self._dispatch.refuse(send, failure))
            case Undeliverable(send, error):
                self._dispatch.abandon(send)
                self._fail(error)
            case CommitAnswer():
                self._commits.answered(message)
            case Assigned(tps):
                self.watches.rebalance_ended()
                self._catch_up.began(tps)
                self._lifecycle.assigned(message)
                if self._stopping:
                    self._dispatch.stop_dispatching(tps)
            case OutOfRange():
                self._lifecycle.out_of_range(message)
            case Revoking():
                self.watches.rebalance_began()
                deadline = min(self._clock() + self._handler.drain_timeout, self._leave_by)
                self._lifecycle.revoking(message, deadline)
                self._commits.trust_again()
            case Lost(tps):
                self.watches.rebalance_began()
                self._lifecycle.lost(tps)
                self._commits.trust_again()
            case TransactionFailed(error):
                self._fetcher.ask(StartOver(error))
            case EngineError(error, fatal):
                if fatal:
                    self._fail(error)
                else:
                    self._tell.error(error, fatal=False)
            case Suspended(seconds):
                self._tell.suspended(seconds)
                self._commits.confirm()
            case Rewound(tps):
                for tp in tps:
                    self._dispatch.rewound(tp)
            case Acked(tp, offset, record):
                self._carry_out(self._dispatch.ack(tp, offset, record))
            case AckedBelow(offsets):
                # A handler may ask for it while the outcomes of the records before its own are still with its worker.
                self._results.extend(result for work in self._works for result in work.collect())
                self._report()
                for tp, offset in offsets.items():
                    self._carry_out(self._dispatch.ack_below(tp, offset))
                self._commits.commit_at_once()
            case GetProgress(answer):
                answer.put(self.survey())
            case Stop(reason):
                self._stop(reason)
            case Left():
                self.left = True

    def _advance(self, now: float) -> None:
        """Everything that is due, whatever message came last."""
        if self._outbox.is_full:
            self._outbox.flush()
        if now >= self._next_collection:
            self._next_collection = now + _COLLECT_SECONDS
            self._look_after_works()
        if now <= self._lease.until and not self._outbox.is_full:
            self._hand_out(now)
        self._backpressure(now)
        self._lifecycle.answer_revokes(now)
        if not self._stopping:
            self._begin_anew()
        self._commits.keep_up(now)
        if self._stopping and not self._leaving:
            self._leave(now)
        if now >= self._next_progress:
            self._tell.progressed()
            self._next_progress = now + _PROGRESS_SECONDS
        if self._until is not None and self._has_caught_up(self._until):
            self._stop("caught up")

    def _hand_out(self, now: float) -> None:
        # With a breaker nobody knows whether the next dead letter is written, so its lane waits for the decision.
        has_dead_letter, clock = self._handler.dead_letter is not None and self._circuit is None, self._clock
        bundles = self._dispatch.take(now, self._bundle_size.size)
        works = [Work(runs, has_dead_letter=has_dead_letter, clock=clock) for runs in bundles]
        if works:
            self._works.update(works)
            self._tell.dispatched(works)
            self._workers.submit(works)

    def _backpressure(self, now: float) -> None:
        paused, resumed = self._dispatch.balance(now)
        if paused:
            self._fetcher.ask(Pause({pause.epoch.tp: pause.rewind_to for pause in paused}))
        if resumed:
            self._fetcher.ask(Resume([epoch.tp for epoch in resumed]))
        for pause in paused:
            self._tell.paused(pause.epoch)
        for epoch in resumed:
            self._tell.resumed(epoch)

    def _begin_anew(self) -> None:
        for found in self._lifecycle.begin_anew():
            if self._until is not None:
                self._until[found.tp] = min(self._until.get(found.tp, 0), found.high)

    def _has_caught_up(self, until: Mapping[TopicPartition, int]) -> bool:
        if not self._lifecycle.assignments:
            # Others of this process may be through with everything before this one gets anything.
            return bool(until) and self._catch_up.have_finished(until)
        # A commit past the end of its log looks like one that has caught up, until the broker says otherwise.
        if self._lifecycle.unheard or not self._dispatch.caught_up(until):
            return False
        # What a transaction holds is not done before it is committed: it may be lost, and done again.
        if self._transactor is not None and (self._commits.is_under_way or self._dispatch.commits()):
            return False
        # A member with nothing to do may still get what another one of this process gives back.
        self._catch_up.finished(epoch.tp for epoch in self._dispatch.epochs)
        return not self._catch_up.unfinished

    # What workers and the broker report.

    def _look_after_works(self) -> None:
        """Take what is finished from workers that are still busy, and from stuck ones what they have not begun."""
        for work in self._works:
            self._results.extend(work.collect())
            if work.began is not None and self._clock() - work.began > _STUCK_SECONDS:
                self._results.extend((run, (), True) for run in work.take_back())
        self._report()
        now, has_idle = self._clock(), self._dispatch.busy < self._handler.concurrency
        for epoch, record, seconds in self._stall_detector.look(self._works, self._dispatch.settled, now):
            self._tell.stalled(epoch, record, seconds)
        hot = self._hot_lanes.look(self._dispatch.epochs, has_idle=has_idle, now=now)
        if hot is not None:
            self._tell.hot_key(hot)

    def _report(self) -> None:
        if self._results:
            results, self._results = self._results, []
            self._carry_out(self._dispatch.report(results, self._clock()))

    def _carry_out(self, effects: Effects) -> None:
        self._tell.settled(effects)
        self._acknowledge(self._outbox.send(effects.sends))
        if effects.halted is not None:
            tried, failure = effects.halted
            name, record = self._handler.name, self._to_record(tried.record, tried.attempt)
            if self._circuit is not None and self._circuit.is_open:
                self._fail(breaker_error(name, record, failure, self._circuit))
            else:
                self._fail(halt_error(name, record, failure, is_committed=self._handler.is_at_most_once))

    def _acknowledge(self, sends: Iterable[Send]) -> None:
        for send in sends:
            if self._dispatch.acknowledge(send):
                self._tell.delivered(send)

    def _deliver_returned(self, tp: TopicPartition, batch: Sequence[AnyRecord], excesses: Mapping[int, int]) -> None:
        """Records of a retry topic: their headers say when they are due."""
        returned = self._failed_records.read_returned(tp, batch)
        begun = self._dispatch.deliver_returned(tp, returned, self._clock(), excesses)
        damaged = [each for each in begun if each.said.problem]
        if damaged:
            offset = self._offset_of(damaged[0].record)
            self._tell.damaged_headers(tp, offset, len(damaged), damaged[0].said.problem)

    # The end.

    def _fail(self, error: PenstockError) -> None:
        self._tell.error(error, fatal=True)
        self.error = self.error or error
        self._stop("error")

    def _stop(self, reason: str) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._tell.stopping(reason)
        tps = [epoch.tp for epoch in self._dispatch.epochs]
        self._dispatch.stop_dispatching(tps)
        self._fetcher.ask(Pause(dict.fromkeys(tps)))
        self._leave_by = self._clock() + self._handler.drain_timeout
        self._commits.hurry()

    def _leave(self, now: float) -> None:
        """Leave once all that was in progress is finished and committed, or it has been waited for long enough.

        Not before: a commit that waits behind a rebalance of others is refused, and only a member that goes on polling
        gets to the next generation, whose commits are accepted.
        """
        drained = all(epoch.drained for epoch in self._dispatch.epochs) and not self._outbox.is_full
        done = drained and not self._commits.is_under_way and not self._dispatch.commits()
        if done or now >= self._leave_by:
            self._leaving = True
            self._commits.close()
            self._fetcher.leave()


def _survey(epoch: Epoch) -> PartitionState:
    committed = None if epoch.committed is None else epoch.committed[0]
    return PartitionState(epoch.number, epoch.tracker.position, committed, epoch.tracker.unfinished)
