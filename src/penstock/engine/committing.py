"""Commits on their way to the broker, on the fetcher's thread."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.core.record import TopicPartition as Place
from penstock.engine.messages import Commit, CommitAnswer, Commits, Inbox

# The client joins a rebalance in the background, so its generation may be a moment behind the group's.
_PASSING_REFUSALS = frozenset(
    {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.STALE_MEMBER_EPOCH}
)
_LAST_COMMIT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)


class Committer:
    """The dispatcher asks for one commit at a time, and gets an answer to each, come what may."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._under_way: Commits = {}
        self._assignments = 0
        self._since: dict[Place, int] = {}  # which assignment each owned partition came with

    def assigned(self, places: Iterable[Place]) -> None:
        """These are ours, by an Assigned that is on its way to the dispatcher."""
        self._assignments += 1
        self._since.update(dict.fromkeys(places, self._assignments))

    def gone(self, places: Iterable[Place]) -> None:
        for place in places:
            self._since.pop(place, None)

    def commit(self, consumer: Any, asked: Commit) -> None:
        """In the background; ``on_commit`` gets the answer.

        A commit may have waited here while its partitions were given back, with a later commit, and perhaps taken
        again. Brokers look at the member, not at what it owns, so they would take it, and the group would go back.
        """
        never = self._assignments + 1
        commits = {p: at for p, at in asked.commits.items() if self._since.get(p, never) <= asked.assignments}
        if not commits:
            self._inbox.put(CommitAnswer({}, {}))
            return
        self._under_way = commits
        try:
            consumer.commit(offsets=_to_commit(commits), asynchronous=True)
        except KafkaException as error:
            self.abandon(error.args[0].str())

    def on_commit(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        """The client's callback."""
        refused = {}
        for each in partitions:
            reason = error or each.error
            if reason is not None:
                refused[each.topic, each.partition] = reason.str()
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in partitions}
        self._under_way = {}
        self._inbox.put(CommitAnswer(commits, refused))

    def abandon(self, reason: str) -> None:
        """No answer will come to what is under way."""
        commits, self._under_way = self._under_way, {}
        if commits:
            self.refuse(commits, reason)

    def refuse(self, commits: Commits, reason: str) -> None:
        self._inbox.put(CommitAnswer(commits, dict.fromkeys(commits, reason)))

    def commit_at_last(self, consumer: Any, commits: Commits) -> None:
        """The last commit of an epoch waits for its answer, and is repeated while a rebalance of others refuses it."""
        if not commits:
            return
        for wait in (*_LAST_COMMIT_WAITS, None):
            try:
                done = consumer.commit(offsets=_to_commit(commits), asynchronous=False)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if wait is not None and (reason.retriable() or reason.code() in _PASSING_REFUSALS):
                    time.sleep(wait)
                    continue
                self.refuse(commits, reason.str())
            else:
                self.on_commit(None, done)
            return


def _to_commit(commits: Commits) -> list[TopicPartition]:
    return [TopicPartition(*place, offset, metadata) for place, (offset, metadata) in commits.items()]
