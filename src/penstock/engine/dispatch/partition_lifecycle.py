"""Partitions come and go: what a member does when it is given some, is asked for them, or finds their log changed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from penstock.core.progress.offset_map import Range, UnreadableMapError, decode, joined
from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.lanes import Epoch
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.protocols import TransactorSide
from penstock.engine.dispatch.thread_messages import Assigned, Revoking, Seek, ToFetcher
from penstock.engine.observe.reporter import Reporter


@dataclass(slots=True)
class _Revoke:
    request: Revoking
    deadline: float


class PartitionLifecycle:
    """The epochs of a member, from the first message about one to the last."""

    def __init__(self, dispatch: Dispatch, commits: CommitScheduler, reporter: Reporter) -> None:
        self._dispatch = dispatch
        self._commits = commits
        self._tell = reporter
        self._transactor: TransactorSide | None = None
        self._revokes: list[_Revoke] = []
        self._set_back: dict[TopicPartition, OutOfRange] = {}  # logs that begin anew once their old records are through
        self.unheard: set[TopicPartition] = set()  # of these nothing was fetched yet, not even that they end there
        self.assignments = self.losses = 0  # heard of so far

    def attach(self, ask: Callable[[ToFetcher], None], transactor: TransactorSide | None) -> None:
        self._ask, self._transactor = ask, transactor

    def next_due(self) -> float:
        """The last moment of a revoke."""
        return min((revoke.deadline for revoke in self._revokes), default=inf)

    def assigned(self, assigned: Assigned) -> None:
        self._begin_transactions()
        self.assignments += 1
        self.unheard.update(assigned.committed)
        for tp, commit in assigned.committed.items():
            known = assigned.finished.get(tp, ())
            if tp in assigned.starts or commit is None:
                offset = assigned.starts.get(tp)
                epoch = self._begin(tp, offset, known)
            else:
                offset, metadata = commit
                finished = joined(self._read_map(tp, offset, metadata), known)
                epoch = self._dispatch.assign(tp, offset, metadata, finished)
                if tp in assigned.behind:
                    epoch.committed = None  # so that it is committed even if nothing new comes
            if tp in assigned.forced:
                self._tell.forced(epoch, offset, None if commit is None else commit[0])
            self._tell.assigned(epoch, offset)

    def lost(self, tps: Iterable[TopicPartition]) -> None:
        """They are somebody else's already, so nothing of them counts any more."""
        self.losses += 1
        for epoch in self._close(tps):
            self._tell.lost(epoch)
        self._begin_transactions()

    def revoking(self, request: Revoking, deadline: float) -> None:
        """Asked for; answered when what is in progress is through, or at the deadline."""
        self._dispatch.stop_dispatching(request.tps)
        self._revokes.append(_Revoke(request, deadline))

    def answer_revokes(self, now: float) -> None:
        """A revoke that is drained, or has waited long enough, gets its last commit points and ends its epochs."""
        for revoke in [*self._revokes]:
            tps = set(revoke.request.tps)
            ours = [epoch for epoch in self._dispatch.epochs if epoch.tp in tps]
            if now < revoke.deadline and not all(epoch.drained for epoch in ours):
                continue
            if self._transactor is not None and self._commits.is_under_way:
                continue  # one transaction after the other; its answer is on its way
            commits = self._dispatch.commits()
            if self._transactor is not None:
                # A transaction holds what came of all partitions, so the commits of all go with it.
                self._commits.send(commits)
            for epoch in self._close(tps):
                self._tell.revoked(epoch)
            self._revokes.remove(revoke)
            revoke.request.answer.put({tp: commit for tp, commit in commits.items() if tp in tps})

    def out_of_range(self, found: OutOfRange) -> None:
        epoch = next((epoch for epoch in self._dispatch.epochs if epoch.tp == found.tp), None)
        # One that is on its way back meets the same end of the log there, and reports again.
        if epoch is None or epoch.rewinding:
            return
        if found.moved_to < found.offset:
            self._set_back[found.tp] = found
            return
        self._tell.out_of_range(found)
        self._dispatch.reach(found.tp, found.moved_to)
        self._ask(Seek({found.tp: found.moved_to}))

    def begin_anew(self) -> list[OutOfRange]:
        """Offsets start again in a log that was made anew, so the old epoch ends; first, what it delivered finishes.

        Returns those that began now.
        """
        if not self._set_back:
            return []
        through = {epoch.tp for epoch in self._dispatch.epochs if not epoch.tracker.unfinished and epoch.drained}
        begun = [found for tp, found in self._set_back.items() if tp in through]
        for found in begun:
            for epoch in self._close([found.tp]):
                self._tell.revoked(epoch)
            self._tell.out_of_range(found)
            self._tell.assigned(self._begin(found.tp, found.moved_to), found.moved_to)
            self._ask(Seek({found.tp: found.moved_to}, anew=True))
        return begun

    def _begin(self, tp: TopicPartition, offset: int | None, finished: Sequence[Range] = ()) -> Epoch:
        """An epoch of which nothing is committed, or nothing that counts: its first commit says where it stands."""
        epoch = self._dispatch.assign(tp, offset, "", joined(finished))
        epoch.committed = None
        return epoch

    def _begin_transactions(self) -> None:
        """With no epoch left, all that counts is what is committed, and transactions can build on that."""
        if self._transactor is not None and not self._dispatch.epochs:
            self._transactor.reset()

    def _close(self, tps: Iterable[TopicPartition]) -> list[Epoch]:
        tps = list(tps)
        self.unheard.difference_update(tps)
        for tp in tps:
            self._set_back.pop(tp, None)
        return self._dispatch.close(tps)

    def _read_map(self, tp: TopicPartition, offset: int, metadata: str) -> list[Range]:
        try:
            return decode(offset, metadata)
        except UnreadableMapError as error:
            self._tell.ignored_metadata(tp, offset, str(error))
            return []
