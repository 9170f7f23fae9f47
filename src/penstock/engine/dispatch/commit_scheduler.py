"""When a member commits, what became of it, and whether the group still takes it for a member."""

from collections.abc import Callable

from penstock.app import Handler
from penstock.core.progress.lease import Lease
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.thread_messages import CommitAnswer, Commits
from penstock.engine.observe.member_metrics import Stopwatches
from penstock.engine.observe.reporter import Reporter

# How soon it is tried again after one was refused, or while the member is about to leave.
_SOON_SECONDS = 0.1


class CommitScheduler:
    """One commit at a time, so that an older one can never overtake a newer one.

    A commit is also how a member that was asleep asks whether it still counts: the broker takes none from others.
    What ``carry`` takes there is answered by a message.
    """

    def __init__(
        self,
        handler: Handler,
        dispatch: Dispatch,
        reporter: Reporter,
        *,
        lease: Lease,
        watches: Stopwatches,
        clock: Callable[[], float],
        carry: Callable[[Commits], None],
    ) -> None:
        self._dispatch = dispatch
        self._tell = reporter
        self._lease = lease
        self._watches = watches
        self._clock = clock
        self._carry = carry
        self._every = handler.commit_every
        self._after = 1 if handler.commit == "record" else handler.commit_after
        self._settled = 0  # records that were through at the last commit
        self._again = False
        self._closed = False
        self._not_before = 0.0  # at most once: when the next one may be tried, after one was refused
        self._confirming: Commits | None = None  # the commit whose answer says whether this member still counts
        self.next = clock() + self._every
        self.is_under_way = False

    def hurry(self) -> None:
        """From now on whatever is finished is committed soon: the member is about to leave."""
        self.next, self._every = self._clock(), _SOON_SECONDS

    def close(self) -> None:
        """The member leaves, and its last commits go with what it gives back."""
        self._closed = True

    def keep_up(self, now: float) -> None:
        """Commit if it is time, or enough was finished."""
        if now >= self.next or self._is_enough(now):
            self.commit()
            self.next = now + self._every

    def _is_enough(self, now: float) -> bool:
        """Whether so many records were finished since the last commit that the next one need not wait for its time."""
        if self.is_under_way:
            return False
        if self._dispatch.waits_for_commit and now >= self._not_before:
            return True
        return self._after is not None and self._dispatch.settled - self._settled >= self._after

    def commit(self) -> None:
        if self.is_under_way or self._closed:
            return
        if self._confirming is not None:
            self.confirm()
            return
        self._settled = self._dispatch.settled
        self.send(self._dispatch.commits())

    def commit_at_once(self) -> None:
        """Now, or when the one under way is answered: somebody asked for it."""
        self._again = self.is_under_way
        self.commit()

    def send(self, commits: Commits) -> None:
        if not commits:
            return
        self.is_under_way = True
        self._watches.commit_asked()
        self._dispatch.committing(commits)
        self._carry(commits)

    def answered(self, answer: CommitAnswer) -> None:
        self.is_under_way = False
        self._watches.commit_answered()
        if not answer.refused and answer.commits == self._confirming:
            self.trust_again()
        for tp, commit in answer.commits.items():
            reason = answer.refused.get(tp)
            if reason is None:
                self._dispatch.committed(tp, commit)
                self._tell.committed(tp, commit[0])
            else:
                self._dispatch.refused(tp)
                self._tell.commit_failed(tp, commit[0], reason)
        if answer.refused:
            self._not_before = self._clock() + _SOON_SECONDS
            if self._after is not None:
                # Where what is finished does not wait for the next round, a rebalance of others must not make it wait.
                self.next = min(self.next, self._not_before)
        if self._again:
            self._again = False
            self.commit()

    def confirm(self) -> None:
        """Ask the broker whether this member still counts."""
        commits = self._dispatch.commits(known_too=True)
        if commits:
            self._confirming = commits
            self.send(commits)
        else:  # nothing was read yet, so nothing can be handled twice
            self._trust()

    def trust_again(self) -> None:
        """The group has spoken to this member, so what it says holds from now on."""
        if self._confirming is not None:
            self._trust()

    def _trust(self) -> None:
        self._confirming = None
        self._lease.restore(self._clock())
