"""The dispatcher: the one thread that owns the state of a member's partitions."""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from queue import Empty

from penstock.app import Handler, Reading, breaker_error, halt_error
from penstock.core.breaker import Circuit
from penstock.core.decisions import Consequences, Result
from penstock.core.dispatch import Dispatch
from penstock.core.lanes import AnyRecord, Epoch
from penstock.core.lease import Lease
from penstock.core.offset_map import Range, UnreadableMapError, decode
from penstock.core.pace import Pace
from penstock.core.record import TopicPartition
from penstock.engine.health import InProgress
from penstock.engine.letters import Letters
from penstock.engine.messages import (
    Acked,
    AckedBelow,
    Assigned,
    Commit,
    CommitAnswer,
    Commits,
    Delivered,
    Fetched,
    Inbox,
    Left,
    Lost,
    OutOfRange,
    Owned,
    Pause,
    Refused,
    Resume,
    Revoking,
    Rewound,
    Seek,
    Stop,
    Survey,
    Suspended,
    ToDispatcher,
    Trouble,
    Undeliverable,
    Worked,
)
from penstock.engine.reporter import Reporter
from penstock.engine.seams import FetcherSide, OutboxSide
from penstock.engine.siblings import Siblings
from penstock.engine.watch import Watch
from penstock.engine.work import Work
from penstock.engine.workers import Workers, queued_ahead
from penstock.errors import PenstockError

# The longest wait for a message; timers that are due sooner shorten it.
_IDLE_SECONDS = 0.1
_OUTBOX_FULL_SECONDS = 0.02
_PROGRESS_SECONDS = 0.5
# How often a member that is about to leave tries to commit what is left.
_LAST_COMMITS_SECONDS = 0.1
# How often outcomes are taken from workers that are still in the middle of a run.
_COLLECT_SECONDS = 0.1
# A worker that has a bundle for longer than this lets others have the rest of it.
_STUCK_SECONDS = 0.05
# Messages handled before timers get their turn again.
_MESSAGE_BURST = 256


@dataclass(slots=True)
class _Revoke:
    request: Revoking
    deadline: float


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
        reading: Reading,
        lease: Lease,
        until: Mapping[TopicPartition, int] | None,
        siblings: Siblings | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        pace: Pace | None = None,
    ) -> None:
        self._handler = handler
        self._clock = clock
        self._lease = lease
        self._confirming: Commits | None = None  # the commit whose answer says whether this member still counts
        self._to_record, self._offset_of = reading.to_record, reading.offset_of
        self._letters = Letters(handler, reading, wall_clock)
        self._circuit = None if handler.breaker is None else Circuit(handler.breaker)
        self._inbox = inbox
        self._tell = reporter
        self._until = None if until is None else dict(until)
        self._siblings = siblings or Siblings()
        self._dispatch = Dispatch(
            order=handler.order,
            null_keys_in_order=handler.null_keys_in_order,
            concurrency=handler.concurrency + queued_ahead(handler.concurrency),
            batch=handler.batch,
            linger=handler.linger,
            offset_of=reading.offset_of,
            key_of=reading.key_of,
            max_in_flight=handler.max_in_flight,
            dead_letter_of=self._letters.dead_letter if handler.dead_letter else None,
            retry_record_of=self._letters.retry_record,
            retry_topics=sorted({topic.seconds for topic in handler.delayed.values()}),
            circuit=self._circuit,
            random=jitter,
        )
        self._revokes: list[_Revoke] = []
        self._next_commit = clock() + handler.commit_every
        self._next_progress = clock() + _PROGRESS_SECONDS
        self._next_collection = clock() + _COLLECT_SECONDS
        self._commit_after = 1 if handler.commit == "record" else handler.commit_after
        self._finished_at_commit = 0
        self._works: set[Work] = set()
        self._watch = Watch(reading.offset_of, clock())
        self._results: list[Result] = []
        self._pace = pace or Pace()
        self._commit_under_way = False
        self._commit_again = False
        self._set_back: dict[TopicPartition, OutOfRange] = {}  # logs that begin anew once their old records are through
        self._unheard: set[TopicPartition] = set()  # of these nothing was fetched yet, not even that they end there
        self._assignments = 0  # taken so far
        self._stopping = False
        self._leaving = False
        self._leave_by = inf
        self.left = False
        self.error: PenstockError | None = None

    def in_flight_room(self, delivered: int) -> int:
        """How many more records may come in, after so many; called by the fetcher."""
        return self._handler.max_in_flight - (delivered - self._dispatch.settled)

    def health(self) -> tuple[float | None, int, tuple[InProgress, ...]]:
        """Seconds since something was finished, records in flight, what takes longest; read from other threads."""
        in_flight = sum(epoch.tracker.unfinished for epoch in self._dispatch.epochs)
        return (self._clock() - self._watch.finished_at if in_flight else None), in_flight, self._watch.longest

    def attach(self, fetcher: FetcherSide, workers: Workers, outbox: OutboxSide) -> None:
        """Whom it talks to, from its first turn on."""
        self._fetcher, self._workers, self._outbox = fetcher, workers, outbox

    def run(self) -> None:
        """Until the member has left its group."""
        started = self._clock()
        while not self.left:
            self.turn(self._wait())
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
        return max(0.0, min(_IDLE_SECONDS, min(self._next_commit, self.next_due()) - self._clock()))

    @property
    def next_commit(self) -> float:
        """When what is finished by then is committed."""
        return self._next_commit

    def next_due(self) -> float:
        """When else there is something to do without a message: a retry, a batch, the last moment of a revoke."""
        work = self._dispatch.next_due()
        due = [revoke.deadline for revoke in self._revokes]
        return min(due, default=inf) if work is None else min([work, *due])

    def _take(self, message: ToDispatcher) -> None:  # noqa: C901, PLR0912, PLR0915 - some lines for each kind of message
        match message:
            case Fetched(records, ends):
                self._unheard.difference_update(records, ends)
                for place, batch in records.items():
                    if place[0] in self._handler.delayed:
                        self._deliver_returned(place, batch)
                    else:
                        self._dispatch.deliver(place, batch)
                for place, offset in ends.items():
                    self._dispatch.reach(place, offset)
            case Worked(work):
                self._works.discard(work)
                self._dispatch.release()
                self._pace.observe(work.attempted, work.seconds)
                self._results.extend(work.collect())
            case Delivered(sends):
                for send in sends:
                    if self._dispatch.acknowledge(send):
                        self._tell.delivered(send)
            case Refused(send, failure):
                self._carry_out(self._dispatch.refuse(send, failure))
            case Undeliverable(send, error):
                self._dispatch.abandon(send)
                self._fail(error)
            case CommitAnswer():
                self._on_commit_answer(message)
            case Assigned():
                self._on_assigned(message)
            case OutOfRange():
                self._on_out_of_range(message)
            case Revoking(places, _):
                self._dispatch.stop_dispatching(places)
                deadline = min(self._clock() + self._handler.drain_timeout, self._leave_by)
                self._revokes.append(_Revoke(message, deadline))
                self._trust_again()
            case Lost(places):
                for epoch in self._close(places):
                    self._tell.lost(epoch)
                self._trust_again()
            case Trouble(error, fatal):
                if fatal:
                    self._fail(error)
                else:
                    self._tell.error(error, fatal=False)
            case Suspended(seconds):
                self._tell.suspended(seconds)
                self._confirm()
            case Rewound(places):
                for place in places:
                    self._dispatch.rewound(place)
            case Acked(place, offset, record):
                self._carry_out(self._dispatch.ack(place, offset, record))
            case AckedBelow(offsets):
                for place, offset in offsets.items():
                    self._carry_out(self._dispatch.ack_below(place, offset))
                self._commit_again = self._commit_under_way
                self._commit()
            case Survey(answer):
                answer.put({epoch.place: _survey(epoch) for epoch in self._dispatch.epochs})
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
        if now <= self._lease.until:
            self._hand_out(now)
        self._balance(now)
        self._answer_revokes(now)
        self._begin_anew()
        if now >= self._next_commit or self._enough_to_commit():
            self._commit()
            self._next_commit = now + (_LAST_COMMITS_SECONDS if self._stopping else self._handler.commit_every)
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
        bundles = self._dispatch.take(now, self._pace.size)
        works = [Work(runs, has_dead_letter=has_dead_letter, clock=clock) for runs in bundles]
        if works:
            self._works.update(works)
            self._tell.dispatched(works)
            self._workers.submit(works)

    def _has_caught_up(self, until: Mapping[TopicPartition, int]) -> bool:
        if not self._assignments:
            # Others of this process may be through with everything before this one gets anything.
            return bool(until) and self._siblings.have_finished(until)
        # A commit past the end of its log looks like one that has caught up, until the broker says otherwise.
        if self._unheard or not self._dispatch.caught_up(until):
            return False
        # A member with nothing to do may still get what another one of this process gives back.
        self._siblings.finished(epoch.place for epoch in self._dispatch.epochs)
        return not self._siblings.unfinished

    # What workers and the broker report.

    def _look_after_works(self) -> None:
        """Take what is finished from workers that are still busy, and from stuck ones what they have not begun."""
        for work in self._works:
            self._results.extend(work.collect())
            if work.began is not None and self._clock() - work.began > _STUCK_SECONDS:
                self._results.extend((run, (), True) for run in work.take_back())
        self._report()
        for epoch, record, seconds in self._watch.look(self._works, self._dispatch.settled, self._clock()):
            self._tell.stalled(epoch, record, seconds)

    def _report(self) -> None:
        if self._results:
            results, self._results = self._results, []
            self._carry_out(self._dispatch.report(results, self._clock()))

    def _carry_out(self, consequences: Consequences) -> None:
        self._tell.settled(consequences)
        self._outbox.send(consequences.sends)
        if consequences.halted is not None:
            tried, failure = consequences.halted
            name, record = self._handler.name, self._to_record(tried.record, tried.attempt)
            if self._circuit is not None and self._circuit.is_open:
                self._fail(breaker_error(name, record, failure, self._circuit))
            else:
                self._fail(halt_error(name, record, failure))

    def _deliver_returned(self, place: TopicPartition, batch: Sequence[AnyRecord]) -> None:
        """Records of a retry topic: their headers say when they are due."""
        begun = self._dispatch.deliver_returned(place, self._letters.read_returned(place, batch), self._clock())
        damaged = [each for each in begun if each.said.problem]
        if damaged:
            offset = self._offset_of(damaged[0].record)
            self._tell.damaged_headers(place, offset, len(damaged), damaged[0].said.problem)

    # Partitions come and go.

    def _on_assigned(self, assigned: Assigned) -> None:
        self._assignments += 1
        self._siblings.began(assigned.committed)
        self._unheard.update(assigned.committed)
        for place, commit in assigned.committed.items():
            if place in assigned.starts or commit is None:
                offset = assigned.starts.get(place)
                epoch = self._begin(place, offset)
            else:
                offset, metadata = commit
                finished = self._read_map(place, offset, metadata)
                epoch = self._dispatch.assign(place, offset, metadata, finished)
            if place in assigned.forced:
                self._tell.forced(epoch, offset, None if commit is None else commit[0])
            self._tell.assigned(epoch, offset)
        if self._stopping:
            self._dispatch.stop_dispatching(assigned.committed)

    def _begin(self, place: TopicPartition, offset: int | None) -> Epoch:
        """An epoch of which nothing is committed, or nothing that counts: its first commit says where it stands."""
        epoch = self._dispatch.assign(place, offset)
        epoch.committed = None
        return epoch

    def _on_out_of_range(self, found: OutOfRange) -> None:
        epoch = next((epoch for epoch in self._dispatch.epochs if epoch.place == found.place), None)
        # One that is on its way back meets the same end of the log there, and reports again.
        if epoch is None or epoch.rewinding:
            return
        if found.moved_to < found.offset:
            self._set_back[found.place] = found
            return
        self._tell.out_of_range(found)
        self._dispatch.reach(found.place, found.moved_to)
        self._fetcher.ask(Seek({found.place: found.moved_to}))

    def _begin_anew(self) -> None:
        """Offsets start again in a log that was made anew, so the old epoch ends; first, what it delivered finishes."""
        if not self._set_back:
            return
        through = {epoch.place for epoch in self._dispatch.epochs if not epoch.tracker.unfinished and epoch.drained}
        for place, found in [*self._set_back.items()]:
            if place in through and not self._stopping:
                for epoch in self._close([place]):
                    self._tell.revoked(epoch)
                self._tell.out_of_range(found)
                self._tell.assigned(self._begin(place, found.moved_to), found.moved_to)
                if self._until is not None:
                    self._until[place] = min(self._until.get(place, 0), found.high)
                self._fetcher.ask(Seek({place: found.moved_to}))

    def _close(self, places: Iterable[TopicPartition]) -> list[Epoch]:
        places = list(places)
        self._unheard.difference_update(places)
        for place in places:
            self._set_back.pop(place, None)
        return self._dispatch.close(places)

    def _read_map(self, place: TopicPartition, offset: int, metadata: str) -> list[Range]:
        try:
            return decode(offset, metadata)
        except UnreadableMapError as error:
            self._tell.ignored_metadata(place, offset, str(error))
            return []

    def _answer_revokes(self, now: float) -> None:
        """A revoke that is drained, or has waited long enough, gets its last commit points and ends its epochs."""
        for revoke in [*self._revokes]:
            places = set(revoke.request.places)
            ours = [epoch for epoch in self._dispatch.epochs if epoch.place in places]
            if now < revoke.deadline and not all(epoch.drained for epoch in ours):
                continue
            commits = self._dispatch.commits()
            for epoch in self._close(places):
                self._tell.revoked(epoch)
            self._revokes.remove(revoke)
            revoke.request.answer.put({place: commit for place, commit in commits.items() if place in places})

    def _trust_again(self) -> None:
        """The group has spoken to this member, so what it says holds from now on."""
        if self._confirming is not None:
            self._trust()

    def _trust(self) -> None:
        self._confirming = None
        self._lease.restore(self._clock())

    def _confirm(self) -> None:
        """Ask the broker whether this member still counts, by a commit, which it takes from members only."""
        commits = self._dispatch.commits(known_too=True)
        if commits:
            self._confirming = commits
            self._commit_under_way = True
            self._fetcher.ask(Commit(commits, self._assignments))
        else:  # nothing was read yet, so nothing can be handled twice
            self._trust()

    def _fail(self, error: PenstockError) -> None:
        self._tell.error(error, fatal=True)
        self.error = self.error or error
        self._stop("error")

    def _stop(self, reason: str) -> None:
        if self._stopping:
            return
        self._stopping = True
        self._tell.stopping(reason)
        places = [epoch.place for epoch in self._dispatch.epochs]
        self._dispatch.stop_dispatching(places)
        self._fetcher.ask(Pause(dict.fromkeys(places)))
        self._leave_by = self._next_commit = self._clock()
        self._leave_by += self._handler.drain_timeout

    def _leave(self, now: float) -> None:
        """Leave once all that was in progress is finished and committed, or it has been waited for long enough.

        Not before: a commit that waits behind a rebalance of others is refused, and only a member that goes on polling
        gets to the next generation, whose commits are accepted.
        """
        drained = all(epoch.drained for epoch in self._dispatch.epochs) and not self._outbox.is_full
        done = drained and not self._commit_under_way and not self._dispatch.commits()
        if done or now >= self._leave_by:
            self._leaving = True
            self._fetcher.leave()

    # Commits and back-pressure.

    def _commit(self) -> None:
        # One at a time, so that an older commit can never overtake a newer one.
        if self._commit_under_way or self._leaving:
            return
        if self._confirming is not None:
            self._confirm()
            return
        self._finished_at_commit = self._dispatch.settled
        commits = self._dispatch.commits()
        if commits:
            self._commit_under_way = True
            self._fetcher.ask(Commit(commits, self._assignments))

    def _enough_to_commit(self) -> bool:
        """Whether so many records were finished since the last commit that the next one need not wait for its time."""
        if self._commit_after is None or self._commit_under_way:
            return False
        return self._dispatch.settled - self._finished_at_commit >= self._commit_after

    def _on_commit_answer(self, answer: CommitAnswer) -> None:
        self._commit_under_way = False
        if not answer.refused and answer.commits == self._confirming:
            self._trust_again()
        for place, commit in answer.commits.items():
            reason = answer.refused.get(place)
            if reason is None:
                self._dispatch.committed(place, commit)
                self._tell.committed(place, commit[0])
            else:
                self._tell.commit_failed(place, commit[0], reason)
        if self._commit_again:
            self._commit_again = False
            self._commit()

    def _balance(self, now: float) -> None:
        paused, resumed = self._dispatch.balance(now)
        if paused:
            self._fetcher.ask(Pause({pause.epoch.place: pause.rewind_to for pause in paused}))
        if resumed:
            self._fetcher.ask(Resume([epoch.place for epoch in resumed]))
        for pause in paused:
            self._tell.paused(pause.epoch)
        for epoch in resumed:
            self._tell.resumed(epoch)


def _survey(epoch: Epoch) -> Owned:
    committed = None if epoch.committed is None else epoch.committed[0]
    return Owned(epoch.number, epoch.tracker.position, committed, epoch.tracker.unfinished)
