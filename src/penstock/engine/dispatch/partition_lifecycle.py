"""What a member does when partitions are assigned, revoked or lost, and when a log was truncated or recreated."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from penstock.app.dispatching.reporter import Reporter
from penstock.core.progress.offset_map import Range, UnreadableMapError, decode, joined
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.lanes import Epoch
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.protocols import TransactorSide
from penstock.engine.dispatch.thread_messages import (
    Assigned,
    PartitionState,
    Pause,
    Resume,
    Revoking,
    Seek,
    ToFetcher,
)


@dataclass(slots=True)
class _Revoke:
    request: Revoking
    deadline: float


class PartitionLifecycle:
    """Begins and ends the epochs of a member. The dispatcher's thread owns it."""

    def __init__(self, dispatch: Dispatch, commits: CommitScheduler, reporter: Reporter) -> None:
        self._dispatch = dispatch
        self._commits = commits
        self._reporter = reporter
        self._transactor: TransactorSide | None = None
        self._revokes: list[_Revoke] = []
        self._recreated: dict[TopicPartition, OutOfRange] = {}  # their old records are not finished yet
        self.unfetched: set[TopicPartition] = set()  # assigned, but neither records nor an end were fetched yet
        self.assignments = self.losses = 0  # how many Assigned and Lost messages were taken

    def attach(self, ask_fetcher: Callable[[ToFetcher], None], transactor: TransactorSide | None) -> None:
        self._ask_fetcher, self._transactor = ask_fetcher, transactor

    def next_due(self) -> float:
        """The earliest deadline of a revoke; inf if it must first wait for the answer to a transaction."""
        waits = self._transactor is not None and self._commits.is_under_way
        return min(revoke.deadline for revoke in self._revokes) if self._revokes and not waits else inf

    def assigned(self, assigned: Assigned) -> None:
        self._reset_transactor()
        self.assignments += 1
        self.unfetched.update(assigned.committed)
        for tp, commit in assigned.committed.items():
            known = assigned.finished.get(tp, ())
            if tp in assigned.starts or commit is None:
                offset = assigned.starts.get(tp)
                epoch = self._begin_uncommitted(tp, offset, known)
            else:
                offset, metadata = commit
                finished = joined(self._read_map(tp, offset, metadata), known)
                is_committed = tp not in assigned.behind
                epoch = self._dispatch.assign(tp, offset, metadata, finished, is_committed=is_committed)
            if tp in assigned.forced:
                self._reporter.start_overridden(epoch, offset, None if commit is None else commit[0])
            self._reporter.assigned(epoch, offset)

    def lost(self, tps: Iterable[TopicPartition]) -> None:
        """Drop these partitions at once: another member may own them already, so nothing is drained or committed."""
        self.losses += 1
        for epoch in self._close(tps):
            self._reporter.lost(epoch)
        self._reset_transactor()

    def revoking(self, request: Revoking, deadline: float) -> None:
        """Start no further record of these partitions. ``answer_revokes`` answers when they are drained."""
        self._dispatch.stop_dispatching(request.tps)
        self._revokes.append(_Revoke(request, deadline))

    def answer_revokes(self, now: float) -> None:
        """Answer each revoke that is drained or past its deadline with the last commits, and end its epochs."""
        if not self._revokes:
            return
        for revoke in [*self._revokes]:
            tps = set(revoke.request.tps)
            revoked = [epoch for epoch in self._dispatch.epochs if epoch.tp in tps]
            if now < revoke.deadline and not all(epoch.drained for epoch in revoked):
                continue
            if self._transactor is not None and self._commits.is_under_way:
                continue  # only one transaction at a time: wait for its answer
            commits = self._dispatch.commits()
            if self._transactor is not None:
                # A transaction contains outputs of all partitions, so it must contain the commits of all.
                self._commits.send(commits)
            for epoch in self._close(tps):
                self._reporter.revoked(epoch)
            self._revokes.remove(revoke)
            revoke.request.answer.put({tp: commit for tp, commit in commits.items() if tp in tps})

    def balance(self, now: float) -> None:
        """Pause partitions that hold too much, and resume them."""
        paused, resumed = self._dispatch.balance(now)
        if paused:
            self._ask_fetcher(Pause({pause.epoch.tp: pause.rewind_to for pause in paused}, self.assignments))
        if resumed:
            self._ask_fetcher(Resume([epoch.tp for epoch in resumed], self.assignments))
        for pause in paused:
            self._reporter.paused(pause.epoch)
        for epoch in resumed:
            self._reporter.resumed(epoch)

    def stop_fetching(self, tps: Iterable[TopicPartition]) -> None:
        """Pause these partitions for good, because the member stops."""
        self._ask_fetcher(Pause(dict.fromkeys(tps), self.assignments))

    def out_of_range(self, found: OutOfRange) -> None:
        """The fetcher's position is outside of the log.

        If the fetcher moves forward, records were deleted: skip them. If it moves back, the log was recreated:
        ``restart_recreated`` begins a new epoch when the old records are finished.
        """
        epoch = next((epoch for epoch in self._dispatch.epochs if epoch.tp == found.tp), None)
        # A partition that is being rewound finds the same problem after the rewind, and reports it again.
        if epoch is None or epoch.fetch_state.rewinding:
            return
        if found.moved_to < found.offset:
            self._recreated[found.tp] = found
            return
        self._reporter.out_of_range(found)
        self._dispatch.reach(found.tp, found.moved_to)
        self._ask_fetcher(Seek({found.tp: found.moved_to}, self.assignments))

    def restart_recreated(self) -> list[OutOfRange]:
        """Begin a new epoch for each recreated log whose old records are all finished; returns those.

        Offsets start again in a recreated log, so the old epoch must end; but first its records must finish.
        """
        if not self._recreated:
            return []
        finished = {epoch.tp for epoch in self._dispatch.epochs if not epoch.tracker.unfinished and epoch.drained}
        restarted = [found for tp, found in self._recreated.items() if tp in finished]
        for found in restarted:
            for epoch in self._close([found.tp]):
                self._reporter.revoked(epoch)
            self._reporter.out_of_range(found)
            self._reporter.assigned(self._begin_uncommitted(found.tp, found.moved_to), found.moved_to)
            self._ask_fetcher(Seek({found.tp: found.moved_to}, self.assignments, recreated=True))
        return restarted

    def _begin_uncommitted(self, tp: TopicPartition, offset: int | None, finished: Sequence[Range] = ()) -> Epoch:
        """Begin an epoch that must commit in any case: nothing is committed, or the commit is not valid any more."""
        return self._dispatch.assign(tp, offset, "", joined(finished), is_committed=False)

    def _reset_transactor(self) -> None:
        """Drop what the transactor holds uncommitted, if no epoch is left that it belongs to."""
        if self._transactor is not None and not self._dispatch.epochs:
            self._transactor.reset()

    def _close(self, tps: Iterable[TopicPartition]) -> list[Epoch]:
        tps = list(tps)
        self.unfetched.difference_update(tps)
        for tp in tps:
            self._recreated.pop(tp, None)
        return self._dispatch.close(tps)

    def _read_map(self, tp: TopicPartition, offset: int, metadata: str) -> list[Range]:
        try:
            return decode(offset, metadata)
        except UnreadableMapError as error:
            self._reporter.ignored_metadata(tp, offset, str(error))
            return []

    def survey(self) -> dict[TopicPartition, PartitionState]:
        """The progress of each owned partition."""
        return {epoch.tp: _state_of(epoch) for epoch in self._dispatch.epochs}


def _state_of(epoch: Epoch) -> PartitionState:
    committed = None if epoch.committed is None else epoch.committed[0]
    return PartitionState(epoch.number, epoch.tracker.position, committed, epoch.tracker.unfinished)
