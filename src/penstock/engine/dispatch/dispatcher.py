"""The dispatcher: the only thread that owns the state of a member's partitions."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import inf
from queue import Empty

from penstock.app import Handler, RecordAdapter, stop_error
from penstock.app.attempts.failed_records import FailedRecords
from penstock.app.attempts.work import Work
from penstock.app.dispatching.breaker_watch import BreakerWatch
from penstock.app.dispatching.handler_dispatch import dispatch_of
from penstock.app.dispatching.offset_map_watch import OffsetMapWatch
from penstock.app.dispatching.reporter import Reporter
from penstock.app.dispatching.running_concurrency import RunningConcurrency, auto_concurrency
from penstock.app.dispatching.running_rate import RunningRate
from penstock.app.runs.replay_range import recreated_error
from penstock.core.failures.pausing_circuit import circuit_of
from penstock.core.progress.lease import Lease
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.reports.repeated_errors import RepeatedErrors
from penstock.core.scheduling.bundle_size import BundleSize
from penstock.core.scheduling.effects import Effects, Send
from penstock.core.scheduling.in_flight import HandedOver
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.deliveries import Deliveries
from penstock.engine.dispatch.finished_works import FinishedWorks
from penstock.engine.dispatch.live_control import LiveControl
from penstock.engine.dispatch.member_view import MemberView
from penstock.engine.dispatch.partition_lifecycle import PartitionLifecycle
from penstock.engine.dispatch.protocols import FetcherSide, OutboxSide, TransactorSide, WorkersSide
from penstock.engine.dispatch.shutdown import Shutdown
from penstock.engine.dispatch.thread_messages import (
    Acked,
    AckedBelow,
    Approved,
    Ask,
    Assigned,
    Commit,
    CommitAnswer,
    Commits,
    Delivered,
    EngineError,
    Fetched,
    Inbox,
    Left,
    Lost,
    OutputRefused,
    PartitionState,
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
from penstock.engine.dispatch.until_caught_up import UntilCaughtUp
from penstock.engine.dispatch.works_in_progress import WorksInProgress
from penstock.engine.membership.catch_up import CatchUp
from penstock.engine.observe.member_metrics import Stopwatches
from penstock.errors import PenstockError

# The longest wait for a message, without and with unfinished records; timers that are due sooner shorten it.
_IDLE_SECONDS = 0.5
_BUSY_SECONDS = 0.1
# A pause between turns while enough bundles are queued for the workers. ``RunningConcurrency.breath`` would be shorter:
# with quick handlers, this thread would then take Python's lock from its workers too often.
_BREATH_SECONDS = 0.001
_OUTBOX_FULL_SECONDS, _PROGRESS_SECONDS = 0.02, 0.5
# How often to collect outcomes from workers in the middle of a run.
_COLLECT_SECONDS = 0.1
# The most messages to take before timers are checked again.
_MESSAGE_BURST = 256


class Dispatcher:
    """Takes all messages of a member, calls the rules in ``core``, and carries out the effects that they return.

    Timers use ``clock``; ``wall_clock`` is for times that people or other processes read; ``jitter`` returns numbers
    from 0 up to 1. The testing kit passes its own. ``partitions`` returns how many the source topics have.
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
        finished_works: FinishedWorks | None = None,
        partitions: Callable[[], int] = int,
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._lease = lease
        self._to_record = adapter.to_record
        self._failed_records = FailedRecords(handler, adapter, wall_clock)
        self._circuit = circuit_of(handler.breaker)
        # With a circuit breaker, a final failure may stop the app instead of becoming a dead letter. So its lane must
        # wait for the decision.
        self._has_dead_letter = handler.dead_letter is not None and self._circuit is None
        self._inbox = inbox
        self._reporter = reporter
        self._transactor: TransactorSide | None = None
        self._dispatch = dispatch_of(
            handler, adapter, reporter, self._failed_records,
            concurrency=handler.largest_concurrency, circuit=self._circuit, random=jitter,
            ahead=handler.is_at_most_once,
        )  # fmt: skip
        self._deliveries = Deliveries(
            handler, self._dispatch, self._failed_records, reporter, offset_of=adapter.offset_of, clock=clock
        )
        self.rate = RunningRate(handler, self._dispatch, reporter, adapter, partitions=partitions, clock=clock)
        self.concurrency = RunningConcurrency(handler, self._dispatch, reporter, auto_concurrency(handler), clock)
        self.breaker = BreakerWatch(self._circuit, reporter, clock)
        self._next_progress = clock() + _PROGRESS_SECONDS
        self._next_collection = clock() + _COLLECT_SECONDS
        self._offset_maps = OffsetMapWatch(reporter)
        self._errors = RepeatedErrors()
        self._finished_works = finished_works or FinishedWorks(inbox)
        self._works = WorksInProgress(handler, adapter.offset_of, clock)
        self.control = LiveControl(handler, self._dispatch, self.concurrency, self.rate, self._works)
        self.watches = Stopwatches(clock)
        self.view = MemberView(
            handler, adapter, self._dispatch, self._works, self.concurrency, self.watches, clock
        )  # fmt: skip
        self._bundle_size = bundle_size or BundleSize()
        self._commits = CommitScheduler(
            handler, self._dispatch, reporter,
            lease=lease, watches=self.watches, clock=clock, send_commits=self._send_commits,
        )  # fmt: skip
        self._lifecycle = PartitionLifecycle(self._dispatch, self._commits, reporter)
        self._until_caught_up = UntilCaughtUp(
            until, catch_up or CatchUp(), self._dispatch, self._lifecycle, self._commits
        )
        self._shutdown = Shutdown(
            self._dispatch, self._commits, reporter,
            stop_fetching=self._lifecycle.stop_fetching, drain_timeout=handler.drain_timeout, clock=clock,
        )  # fmt: skip
        self.left = False

    @property
    def error(self) -> PenstockError | None:
        """The error that stopped this member."""
        return self._shutdown.error

    def in_flight_room(self, delivered: HandedOver, *, much: bool = False) -> int:
        """How many more records the fetcher may hand over; the fetcher calls it on its own thread."""
        return self._dispatch.in_flight.room(delivered, much=much)

    @property
    def has_joined(self) -> bool:
        """Whether the group has assigned partitions once, even none; for other threads."""
        return self._lifecycle.assignments > 0

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """The progress of each owned partition; only for the dispatcher's thread."""
        return self._lifecycle.survey()

    def attach(
        self, fetcher: FetcherSide, workers: WorkersSide, outbox: OutboxSide, transactor: TransactorSide | None = None
    ) -> None:
        """Connect it to the other threads, before its first turn. With exactly-once, the outbox is the transactor."""
        self._fetcher, self._workers, self._outbox, self._transactor = fetcher, workers, outbox, transactor
        self._lifecycle.attach(fetcher.ask, transactor)
        self._shutdown.attach(fetcher, outbox)
        self.concurrency.attach(workers)

    def _send_commits(self, commits: Commits) -> None:
        if self._transactor is None:
            self._fetcher.ask(Commit(commits, self._lifecycle.assignments))
        else:
            self._transactor.commit(commits, self._lifecycle.losses)

    def run(self) -> None:
        """Run until the member has left its group."""
        started, wait = self._clock(), 0.0
        while not self.left:
            works = self._advance_after(wait)
            wait = self._wait()
            if works:
                self._workers.submit(works)
            if self.concurrency.is_enough_ahead:
                # Bundles are queued, so no worker waits for this thread: let messages gather, and take them at once.
                time.sleep(_BREATH_SECONDS)
        self._reporter.stopped(self._clock() - started)

    def turn(self, wait: float) -> None:
        """Do one round, without the wait after it; for the testing kit."""
        works = self._advance_after(wait)
        if works:
            self._workers.submit(works)

    def _advance_after(self, wait: float) -> list[Work]:
        inbox = self._inbox
        with suppress(Empty):
            self._take(inbox.get(timeout=wait) if wait > 0 else inbox.get_nowait())
        for _ in range(_MESSAGE_BURST):
            if inbox.empty():
                break
            self._take(inbox.get_nowait())
        self._report()
        works = self._advance(self._clock())
        while self._awaits_works() and self._finished_works.has_any and not works:
            self._take_finished_works()
            works = self._advance(self._clock())
        return works

    def _take_finished_works(self) -> None:
        for work in self._finished_works.take():
            self._worked(work)
        self._report()

    def _wait(self) -> float:
        """How long to wait for a message; 0 if works have finished meanwhile that something waits for."""
        if self._outbox.is_full:
            return _OUTBOX_FULL_SECONDS
        is_awaited = self._finished_works.are_awaited
        if is_awaited and self._finished_works.has_any:
            return 0.0
        rests = not is_awaited and self._works.are_none and not self._dispatch.in_flight.unfinished
        longest = _IDLE_SECONDS if rests else _BUSY_SECONDS
        return max(0.0, min(longest, min(self._commits.next, self.next_due()) - self._clock()))

    def _awaits_works(self) -> bool:
        """Whether something waits for works; workers wake this thread for them from now on, or do not any more."""
        finished = self._finished_works
        finished.are_awaited = self._shutdown.has_begun or finished.are_awaited_by(self._dispatch)
        return finished.are_awaited

    @property
    def next_commit(self) -> float:
        """When the next commit by time is due."""
        return self._commits.next

    def next_due(self) -> float:
        """When the next timer other than a commit is due: a retry, a batch's ``linger``, the deadline of a revoke."""
        # Nothing starts while the lease is over, so what is due then must not wake this thread again and again.
        work = None if self._clock() > self._lease.until else self._dispatch.next_due()
        return min(inf if work is None else work, self._lifecycle.next_due())

    def _take(self, message: ToDispatcher) -> None:  # noqa: C901, PLR0912, PLR0915 - some lines for each kind of message
        if type(message) is not Fetched:
            self._take_finished_works()  # they finished before the message came
        match message:
            case Fetched():
                if self._lifecycle.unfetched:
                    self._lifecycle.unfetched.difference_update(message.records, message.ends)
                self._deliveries.take(message)
            case Worked(work):
                self._worked(work)
            case Delivered(sends):
                self._acknowledge(sends)
            case Approved(sends):
                if self._dispatch.is_current(sends[0].tried.epoch):
                    self._acknowledge(self._outbox.send(sends))
            case OutputRefused(send, failure):
                self._carry_out(self._dispatch.refuse(send, failure))
            case Undeliverable(send, error):
                self._dispatch.abandon(send)
                self._shutdown.fail(error)
            case CommitAnswer():
                self._commits.answered(message)
            case Assigned(tps):
                self.watches.rebalance_ended()
                self._until_caught_up.began(tps)
                self._lifecycle.assigned(message)
                if self._shutdown.has_begun:
                    self._dispatch.stop_dispatching(tps)
            case OutOfRange():
                self._lifecycle.out_of_range(message)
            case Revoking():
                self.watches.rebalance_began()
                deadline = min(self._clock() + self._handler.drain_timeout, self._shutdown.leave_by)
                self._lifecycle.revoking(message, deadline)
                self._commits.membership_confirmed()
            case Lost(tps):
                self.watches.rebalance_began()
                self._lifecycle.lost(tps)
                self._commits.membership_confirmed()
            case TransactionFailed(error):
                self._fetcher.ask(StartOver(error))
            case EngineError(error, fatal):
                if fatal:
                    self._shutdown.fail(error)
                elif self._errors.is_due(str(error), self._clock()):
                    self._reporter.error(error, fatal=False)
            case Suspended(seconds):
                self._reporter.suspended(seconds)
                self._commits.confirm()
            case Rewound(tps):
                for tp in tps:
                    self._dispatch.rewound(tp)
            case Acked(tp, offset, record):
                self._carry_out(self._dispatch.ack(tp, offset, record))
            case AckedBelow(offsets):
                self._works.collect()  # the caller may be a handler, whose worker still holds earlier outcomes
                self._report()
                for tp, offset in offsets.items():
                    self._carry_out(self._dispatch.ack_below(tp, offset))
                self._commits.commit_at_once()
            case Ask(question, answer):
                answer.put(question())
            case Stop(reason):
                self._shutdown.begin(reason)
            case Left():
                self.left = True

    def _worked(self, work: Work) -> None:
        self._dispatch.release()
        attempted = work.attempted
        self._bundle_size.observe(attempted, work.seconds)
        self.watches.worked(attempted, work.seconds)
        self._works.remove(work)
        self.concurrency.worked(work)
        self.breaker.worked(work)

    def _advance(self, now: float) -> list[Work]:
        """Do everything that is due now. Returns the works to submit."""
        if self._outbox.is_full:
            self._outbox.flush()
        if now >= self._commits.next:
            self._take_finished_works()
        if now >= self._next_collection:
            self._next_collection = now + _COLLECT_SECONDS
            self._check_works()
        works = self._take_works()
        self._lifecycle.balance(now)
        self._lifecycle.answer_revokes(now)
        if not self._shutdown.has_begun:
            for found in self._lifecycle.restart_recreated():
                self._until_caught_up.recreated(found)
                if self._handler.replay_range is not None:
                    self._shutdown.fail(recreated_error(found.tp[0]))
        self._commits.commit_if_due(now)
        self._shutdown.leave_if_done(now)
        if now >= self._next_progress:
            self._reporter.progressed()
            self.concurrency.report()
            self.rate.report()
            self._offset_maps.look(self._dispatch.epochs)
            self._next_progress = now + _PROGRESS_SECONDS
        if self._until_caught_up.is_reached(in_transactions=self._transactor is not None):
            self._shutdown.begin("caught up")
        return works

    def _take_works(self) -> list[Work]:
        """Take what may start now from the rules; ``run`` hands it to the workers."""
        # Not the time of the turn: the process may have been frozen since, and workers have begun queued works.
        now = self._clock()
        if now > self._lease.until or self._outbox.is_full:
            return []
        self.rate.look()
        bundles = self._dispatch.take(now, self._bundle_size.size)
        self.concurrency.busy = self._dispatch.busy
        if not bundles:
            return []
        works = [Work(runs, has_dead_letter=self._has_dead_letter, clock=self._clock) for runs in bundles]
        self._works.add(works)
        self._reporter.dispatched(works)
        return works

    def _check_works(self) -> None:
        """Collect outcomes from busy workers, take back what stuck workers have not begun, and report stalls."""
        self._take_finished_works()
        self._works.collect_and_take_back()
        self._report()
        self._works.report_slow(self._dispatch, self._reporter, has_idle=self._dispatch.busy < self.concurrency.limit)

    def _report(self) -> None:
        if results := self._works.take_results():
            self._reporter.attempted(results)
            self._carry_out(self._dispatch.report(results, self._clock()))

    def _carry_out(self, effects: Effects) -> None:
        self._reporter.settled(effects)
        self.breaker.look()
        self._acknowledge(self._outbox.send(effects.sends))
        if effects.halted is not None:
            tried, failure = effects.halted
            record = self._to_record(tried.record, tried.attempt)
            self._shutdown.fail(stop_error(self._handler, record, failure, self._circuit))

    def _acknowledge(self, sends: Iterable[Send]) -> None:
        for send in sends:
            if self._dispatch.acknowledge(send):
                self._reporter.delivered(send)
