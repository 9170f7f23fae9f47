"""Sends the dispatcher's commits to the broker, and the answers back. Runs on the fetcher thread."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Commit, CommitAnswer, Commits, Inbox
from penstock.engine.fetch.store_session import StoreSession
from penstock.engine.produce.transactor import Transactor
from penstock.kafka.error_codes import REBALANCING
from penstock.kafka.errors import commit_refusal

_TRANSACTION_CHECK_SECONDS = 0.002
_LAST_COMMIT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True)
class _Saving:
    """A save in progress. ``assignments`` is the count of assignments that the dispatcher knew when it asked."""

    commits: Commits
    assignments: int
    refused: Future[dict[TopicPartition, str]]


class CommitSender:
    """The dispatcher asks for one commit at a time and gets exactly one answer to each.

    A ``transactor`` commits itself and only needs the group metadata from here. Commits ``ahead`` of the records
    (at-most-once) wait for the broker, so that each has its answer even while a revoke drains. With a ``store_session``
    the store has the progress that counts; the group's offsets follow it. The store saves in the background: a
    handler's transaction may lock the database for long, and a member that does not poll in that time delays its whole
    group. Only the last commit of a partition waits for the save. ``is_member`` is False for a handler with
    ``partitions=``.
    """

    def __init__(
        self,
        inbox: Inbox,
        transactor: Transactor | None = None,
        *,
        ahead: bool = False,
        store_session: StoreSession | None = None,
        is_member: bool = True,
    ) -> None:
        self._inbox = inbox
        self._is_member = is_member
        self._store_session = store_session
        self._saving: _Saving | None = None
        self._not_saved: dict[TopicPartition, tuple[tuple[int, str], str]] = {}
        self.ahead = ahead
        self._transactor = transactor
        self._under_way: Commits = {}
        self._assignments = 0
        self._assigned_by: dict[TopicPartition, int] = {}  # the number of the assignment of each owned partition

    def assigned(self, tps: Iterable[TopicPartition]) -> None:
        """Note an assignment. The caller sends Assigned to the dispatcher."""
        self._assignments += 1
        self._assigned_by.update(dict.fromkeys(tps, self._assignments))

    def lost(self) -> None:
        """Note that partitions were lost. The caller sends Lost to the dispatcher."""
        if self._transactor is not None:
            self._transactor.lost()

    def gone(self, tps: Iterable[TopicPartition]) -> None:
        tps = [*tps]
        for tp in tps:
            self._assigned_by.pop(tp, None)
        if self._store_session is not None:
            self._store_session.gone(tps)

    def attend(self, member: Any) -> None:
        """Between two polls: serve the transactor, and send a commit to Kafka that the store has saved."""
        self.authorize(member)
        if self._saving is not None and self._saving.refused.done():
            self._finish_saving(member)

    def authorize(self, member: Any) -> None:
        if self._transactor is not None:
            self._transactor.authorize(member)

    def commit(self, consumer: Any, asked: Commit, *, wait: bool = False) -> None:
        """Commit in the background, or ``wait`` for the broker; never wait for a save. ``on_commit`` gets the answer.

        While the commit waited in the queue, its partitions may have been revoked, with a later commit, and assigned
        again. A broker checks the member, not the partitions it owns, so it would accept the old commit and the group's
        offset would move backwards. So commits of an earlier assignment are dropped.
        """
        commits = self._of_still_owned(asked.commits, asked.assignments)
        if not commits:
            self._inbox.put(CommitAnswer({}, {}))
            return
        self._under_way = commits
        if self._store_session is None:
            self._send(consumer, commits, wait=wait)
        else:
            self._saving = _Saving(commits, asked.assignments, self._store_session.start_saving(commits))

    def still_owned(self, tps: Iterable[TopicPartition], assignments: int) -> list[TopicPartition]:
        """Return those of these partitions that the member has owned ever since it had so many assignments."""
        never = self._assignments + 1
        return [tp for tp in tps if self._assigned_by.get(tp, never) <= assignments]

    def _of_still_owned(self, commits: Commits, assignments: int) -> Commits:
        return {tp: commits[tp] for tp in self.still_owned(commits, assignments)}

    def _finish_saving(self, consumer: Any) -> None:
        """Wait for the save in progress, if there is one, and commit what was saved to Kafka."""
        saving, self._saving = self._saving, None
        if saving is not None:
            kept = self._note_refusals(saving.commits, saving.refused.result())
            # Some partitions may have been revoked during the save, with a later commit.
            self._send(consumer, self._of_still_owned(kept, saving.assignments))

    def _send(self, consumer: Any, commits: Commits, *, wait: bool = False) -> None:
        if not commits:
            self.on_commit(None, [])
            return
        try:
            if self.ahead or wait:
                self.on_commit(None, consumer.commit(offsets=_to_commit(commits), asynchronous=False))
            else:
                consumer.commit(offsets=_to_commit(commits), asynchronous=True)
        except KafkaException as error:
            self.abandon(self._why(error.args[0]))

    def on_commit(self, error: KafkaError | None, partitions: Sequence[KafkaTopicPartition]) -> None:
        """The client's callback."""
        refused = {}
        for each in partitions:
            reason = error or each.error
            if reason is not None:
                refused[each.topic, each.partition] = self._why(reason)
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in partitions}
        self.answered(commits, refused)

    def answered(self, commits: Commits, refused: Mapping[TopicPartition, str]) -> None:
        """Send the answer to the dispatcher, with a reason for each refused partition.

        Called on the fetcher thread or on the thread of a CommitConnection. That is safe because the dispatcher asks
        for no other commit before it has this answer.
        """
        commits, refused = dict(commits), dict(refused)
        for tp, (commit, why) in self._not_saved.items():
            commits[tp], refused[tp] = commit, why
        self._under_way, self._not_saved = {}, {}
        self._inbox.put(CommitAnswer(commits, refused))

    def _note_refusals(self, commits: Commits, refused: Mapping[TopicPartition, str]) -> Commits:
        """Return the commits that the store has saved. The next answer has the reasons for the others."""
        self._not_saved = {tp: (commits[tp], reason) for tp, reason in refused.items()}
        return {tp: commit for tp, commit in commits.items() if tp not in refused}

    def abandon(self, reason: str) -> None:
        """Answer the commit in progress with this reason: the broker will not answer it."""
        if self._transactor is not None:
            self._transactor.abandon()
        self._saving = None
        commits, self._under_way, self._not_saved = self._under_way, {}, {}
        if commits:
            self.refuse(commits, reason)

    def refuse(self, commits: Commits, reason: str) -> None:
        self._inbox.put(CommitAnswer(commits, dict.fromkeys(commits, reason)))

    def commit_last(self, consumer: Any, commits: Commits) -> None:
        """Make the last commit of an epoch: wait for the answer, and retry while a rebalance causes refusals."""
        if self._transactor is not None:
            self._end_transaction(consumer, self._transactor)
            return
        # Wait for the older save first: it must not overwrite the newer one.
        self._finish_saving(consumer)
        if not commits:
            return
        refused: dict[TopicPartition, str] = {}
        if self._store_session is not None:
            refused |= self._store_session.start_saving(commits).result()
        if saved := {tp: commit for tp, commit in commits.items() if tp not in refused}:
            refused |= self._commit_and_wait(consumer, saved)
        self._inbox.put(CommitAnswer(commits, refused, is_last=True))

    def _commit_and_wait(self, consumer: Any, commits: Commits) -> dict[TopicPartition, str]:
        """Return the reason for each partition that was refused."""
        for wait in (*_LAST_COMMIT_WAITS, None):
            try:
                done = consumer.commit(offsets=_to_commit(commits), asynchronous=False)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if wait is None or not (reason.retriable() or reason.code() in REBALANCING):
                    return dict.fromkeys(commits, self._why(reason))
                time.sleep(wait)
            else:
                return {(each.topic, each.partition): self._why(each.error) for each in done if each.error is not None}
        return {}

    def _why(self, error: KafkaError) -> str:
        return commit_refusal(error, is_member=self._is_member)

    @staticmethod
    def _end_transaction(member: Any, transactor: Transactor) -> None:
        """Wait until the transactor has committed.

        The dispatcher has queued everything, and the transactor has timeouts.
        """
        while transactor.is_committing:
            transactor.authorize(member)
            time.sleep(_TRANSACTION_CHECK_SECONDS)


def _to_commit(commits: Commits) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp, offset, metadata) for tp, (offset, metadata) in commits.items()]
