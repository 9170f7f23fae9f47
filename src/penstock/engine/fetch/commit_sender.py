"""Commits on their way to the broker, on the fetcher's thread."""

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
from penstock.kafka.errors import commit_refusal

# The client joins a rebalance in the background, so its generation may be a moment behind the group's.
_PASSING_REFUSALS = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.STALE_MEMBER_EPOCH}
)
_TRANSACTION_CHECK_SECONDS = 0.002
_LAST_COMMIT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True)
class _Saving:
    """A save under way, with what was asked for, and as of which assignment."""

    commits: Commits
    assignments: int
    refused: Future[dict[TopicPartition, str]]


class CommitSender:
    """The dispatcher asks for one commit at a time, and gets an answer to each, come what may.

    With a ``transactor`` the commits are its own, and it only has to be told as whom. Commits ``ahead`` of the records
    are waited for, so that each is answered even while a revoke drains. With a ``keeper`` what counts is what it keeps;
    the group's offsets only follow. The keeper saves in the background: a handler's transaction may hold the database
    for long, and a member that does not poll meanwhile would hold up its whole group. Only a last commit waits for it.
    ``is_member`` is False for a handler that has chosen its partitions itself.
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
        self._not_kept: dict[TopicPartition, tuple[tuple[int, str], str]] = {}
        self.ahead = ahead
        self._transactor = transactor
        self._under_way: Commits = {}
        self._assignments = 0
        self._since: dict[TopicPartition, int] = {}  # which assignment each owned partition came with

    def assigned(self, tps: Iterable[TopicPartition]) -> None:
        """These are ours, by an Assigned that is on its way to the dispatcher."""
        self._assignments += 1
        self._since.update(dict.fromkeys(tps, self._assignments))

    def lost(self) -> None:
        """As told by a Lost that is on its way to the dispatcher."""
        if self._transactor is not None:
            self._transactor.lost()

    def gone(self, tps: Iterable[TopicPartition]) -> None:
        tps = [*tps]
        for tp in tps:
            self._since.pop(tp, None)
        if self._store_session is not None:
            self._store_session.gone(tps)

    def attend(self, member: Any) -> None:
        """Between two polls: carry on with what the transactor or the keeper has got to."""
        self.authorize(member)
        if self._saving is not None and self._saving.refused.done():
            self._finish_saving(member)

    def authorize(self, member: Any) -> None:
        if self._transactor is not None:
            self._transactor.authorize(member)

    def commit(self, consumer: Any, asked: Commit, *, wait: bool = False) -> None:
        """In the background, unless it is to ``wait``; ``on_commit`` gets the answer. A save is never waited for here.

        A commit may have waited here while its partitions were given back, with a later commit, and perhaps taken
        again. Brokers look at the member, not at what it owns, so they would take it, and the group would go back.
        """
        commits = self._still_ours(asked.commits, asked.assignments)
        if not commits:
            self._inbox.put(CommitAnswer({}, {}))
            return
        self._under_way = commits
        if self._store_session is None:
            self._send(consumer, commits, wait=wait)
        else:
            self._saving = _Saving(commits, asked.assignments, self._store_session.start_saving(commits))

    def _still_ours(self, commits: Commits, assignments: int) -> Commits:
        never = self._assignments + 1
        return {tp: at for tp, at in commits.items() if self._since.get(tp, never) <= assignments}

    def _finish_saving(self, consumer: Any) -> None:
        """What was saved goes on to Kafka; waits for the save, where that goes on."""
        saving, self._saving = self._saving, None
        if saving is not None:
            kept = self._note_refusals(saving.commits, saving.refused.result())
            # Some may have been given back meanwhile, with a later commit.
            self._send(consumer, self._still_ours(kept, saving.assignments))

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
        """With the reasons for what was refused.

        On the fetcher's thread, or on that of a CommitConnection: the dispatcher asks for no other commit before this.
        """
        commits, refused = dict(commits), dict(refused)
        for tp, (commit, why) in self._not_kept.items():
            commits[tp], refused[tp] = commit, why
        self._under_way, self._not_kept = {}, {}
        self._inbox.put(CommitAnswer(commits, refused))

    def _note_refusals(self, commits: Commits, refused: Mapping[TopicPartition, str]) -> Commits:
        """Those that may go on to Kafka; why the others may not is a part of the next answer."""
        self._not_kept = {tp: (commits[tp], reason) for tp, reason in refused.items()}
        return {tp: commit for tp, commit in commits.items() if tp not in refused}

    def abandon(self, reason: str) -> None:
        """No answer will come to what is under way."""
        if self._transactor is not None:
            self._transactor.abandon()
        self._saving = None
        commits, self._under_way, self._not_kept = self._under_way, {}, {}
        if commits:
            self.refuse(commits, reason)

    def refuse(self, commits: Commits, reason: str) -> None:
        self._inbox.put(CommitAnswer(commits, dict.fromkeys(commits, reason)))

    def commit_at_last(self, consumer: Any, commits: Commits) -> None:
        """The last commit of an epoch waits for its answer, and is repeated while a rebalance of others refuses it."""
        if self._transactor is not None:
            self._end_transaction(consumer, self._transactor)
            return
        # One save after the other: an older one must not come last.
        self._finish_saving(consumer)
        if not commits:
            return
        if self._store_session is not None:
            commits = self._note_refusals(commits, self._store_session.start_saving(commits).result())
        if not commits:
            self.on_commit(None, [])
            return
        for wait in (*_LAST_COMMIT_WAITS, None):
            try:
                done = consumer.commit(offsets=_to_commit(commits), asynchronous=False)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if wait is not None and (reason.retriable() or reason.code() in _PASSING_REFUSALS):
                    time.sleep(wait)
                    continue
                self.refuse(commits, self._why(reason))
            else:
                self.on_commit(None, done)
            return

    def _why(self, error: KafkaError) -> str:
        return commit_refusal(error, is_member=self._is_member)

    @staticmethod
    def _end_transaction(member: Any, transactor: Transactor) -> None:
        """The dispatcher has sent the last of these partitions to it, and its own time-outs see to an end."""
        while transactor.is_committing:
            transactor.authorize(member)
            time.sleep(_TRANSACTION_CHECK_SECONDS)


def _to_commit(commits: Commits) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp, offset, metadata) for tp, (offset, metadata) in commits.items()]
