"""When a member commits, and what follows from the broker's answers."""

from collections.abc import Callable

from penstock.app import Handler
from penstock.app.dispatching.reporter import Reporter
from penstock.core.progress.lease import Lease
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.thread_messages import CommitAnswer, Commits
from penstock.engine.observe.member_metrics import Stopwatches

# How long to wait after a refused commit, and between commits while the member is about to leave.
_SOON_SECONDS = 0.1


class CommitScheduler:
    """Decides when to commit. Only one commit is under way at a time, so an older one never overtakes a newer one.

    It also confirms the membership: a member that did not poll for longer than its session commits again what it knows,
    because the broker accepts commits only from current members.

    The dispatcher's thread owns it. ``send_commits`` passes commits on to the fetcher (or to the transactor), which
    answers with a ``CommitAnswer``.
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
        send_commits: Callable[[Commits], None],
    ) -> None:
        self._dispatch = dispatch
        self._reporter = reporter
        self._lease = lease
        self._watches = watches
        self._clock = clock
        self._send_commits = send_commits
        self._every = handler.commit_every
        self._after = 1 if handler.commit == "record" else handler.commit_after
        self._settled = 0  # ``Dispatch.settled`` at the last commit
        self._again = False  # commit once more when the commit under way is answered
        self._closed = False
        self._not_before = 0.0  # at most once: when the next commit may be tried after a refused one
        self._confirming: Commits | None = None  # the commit whose answer confirms the membership
        self.next = clock() + self._every
        self.is_under_way = False

    def commit_soon(self) -> None:
        """From now on commit every 0.1 s, because the member is about to leave."""
        self.next, self._every = self._clock(), _SOON_SECONDS

    def close(self) -> None:
        """Send no further commit: the member leaves, and the answers to its revokes contain the last commits."""
        self._closed = True

    def commit_if_due(self, now: float) -> None:
        """Commit if ``commit_every`` is over, or if enough records were finished."""
        if now >= self.next or self._is_enough(now):
            self.commit()
            self.next = now + self._every

    def _is_enough(self, now: float) -> bool:
        """Whether to commit before ``commit_every`` is over."""
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
        """Commit now because the user asked for it; if a commit is under way, after its answer."""
        self._again = self.is_under_way
        self.commit()

    def send(self, commits: Commits) -> None:
        if not commits:
            return
        self.is_under_way = True
        self._watches.commit_asked()
        self._dispatch.committing(commits)
        self._send_commits(commits)

    def answered(self, answer: CommitAnswer) -> None:
        if not answer.is_last:
            self.is_under_way = False
            self._watches.commit_answered()
        if not answer.refused and answer.commits == self._confirming:
            self.membership_confirmed()
        for tp, commit in answer.commits.items():
            reason = answer.refused.get(tp)
            if reason is None:
                self._dispatch.committed(tp, commit)
                self._reporter.committed(tp, commit[0])
            else:
                self._dispatch.refused(tp)
                self._reporter.commit_failed(tp, commit[0], reason)
        if answer.refused:
            self._not_before = self._clock() + _SOON_SECONDS
            if self._after is not None:
                # Commits that follow finished records must not wait for ``commit_every`` only because another member's
                # rebalance refused one.
                self.next = min(self.next, self._not_before)
        if self._again and not answer.is_last:
            self._again = False
            self.commit()

    def confirm(self) -> None:
        """Ask the broker whether this member is still in the group, by a commit of all that is known."""
        commits = self._dispatch.commits(known_too=True)
        if commits:
            self._confirming = commits
            self.send(commits)
        else:  # no record was read yet, so none can be handled twice
            self._restore_lease()

    def membership_confirmed(self) -> None:
        """The group has answered this member, so its partitions are its own again."""
        if self._confirming is not None:
            self._restore_lease()

    def _restore_lease(self) -> None:
        self._confirming = None
        self._lease.restore(self._clock())
