"""A separate connection for the commits of a native member."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.thread_messages import Commits
from penstock.errors import PenstockError
from penstock.kafka.client.librdkafka_internals import member_in
from penstock.kafka.error_codes import NO_COORDINATOR_YET, Code
from penstock.kafka.errors import commit_refusal

# The limit for finding the coordinator on the new connection, before the member joins.
_FIND_SECONDS = 5.0
# Longer than the connection's own timeout, after which it answers a commit with an error.
_ANSWER_SECONDS = 30.0
# How long the Kafka client commits after this connection has failed.
_CLIENT_SECONDS = 30.0


class CommitConnection:
    """Commits in place of the Kafka client: as the same member, in the same generation, on another connection.

    A broker answers the requests of one connection in order, and it answers a JoinGroup only when the last member has
    joined. On the client's connection the broker reads a commit behind the JoinGroup only then, and refuses it because
    its generation is over: records that finish during the rebalance stay uncommitted. On a second connection the broker
    accepts the commit.

    Two connections must not move the committed offset backwards, so only one is in use at a time:

    - A commit on this connection starts when the previous one has its answer. So commits reach the broker in order,
      also the last commit of a revoke (``asynchronous=False`` waits for the commit in progress).
    - If this connection fails, the client commits for the next 30 s, with the same or a later offset. kafka-python has
      closed the failed connection before that, so the broker has read the failed request already, or never reads it.
      The exception is a broker that freezes for longer than the request timeout and then continues: it can read that
      request after a later one, as with every Kafka client.
    - This connection takes over again only when the client waits for no answer. So the broker has answered a client's
      commit that was queued behind a JoinGroup before this connection sends a later one.
    - If a partition is revoked during a commit, the broker answers that commit before the last commit of the partition
      is sent, and the partition has no new owner until then. If the member is lost, the broker rejects its id.

    Used on the fetcher thread; ``answered`` is called on the connection's thread as soon as the broker has answered.
    """

    def __init__(
        self,
        consumer: Any,
        group: str,
        network: Any,
        *,
        identity: Callable[[str, str, int, str | None], Any],
        answered: Callable[[Commits, Mapping[TopicPartition, str]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer = consumer
        self._group = group
        self._network = network
        self._connection = network.connect(group)
        self._identity = identity
        self._answered = answered
        self._clock = clock
        self._idle = threading.Event()
        self._idle.set()
        self._failed = -inf  # when this connection failed last
        self._client_answers_due = 0  # background commits of the client without an answer

    def find_coordinator(self) -> None:
        self._connection.reach(seconds=_FIND_SECONDS)

    def close(self) -> None:
        """Close the connection. A commit in progress is answered with an error."""
        self._network.close()

    def client_answered(self) -> None:
        """Note an answer to a background commit of the client."""
        self._client_answers_due = max(0, self._client_answers_due - 1)

    def commit(self, *, offsets: Sequence[KafkaTopicPartition], asynchronous: bool) -> Sequence[KafkaTopicPartition]:
        """Commit, with the same parameters as ``Consumer.commit``."""
        if self._client_answers_due or self._clock() < self._failed + _CLIENT_SECONDS:
            return self._commit_by_client(offsets, asynchronous=asynchronous)
        if not self._idle.wait(_ANSWER_SECONDS):
            raise KafkaException(KafkaError(Code.LOCAL_TIMED_OUT))
        found = member_in(self._consumer.consumer_group_metadata(), self._group)
        if found is None:
            return self._commit_by_client(offsets, asynchronous=asynchronous)
        member = self._identity(self._group, *found)
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in offsets}
        if asynchronous:
            self._idle.clear()
            self._connection.commit_later(member, commits, lambda answer: self._on_answer(commits, answer))
            return offsets
        try:
            refused = self._connection.commit(member, commits)
        except KafkaException:
            self._failed = self._clock()
            return self._commit_by_client(offsets, asynchronous=False)
        if self._has_no_coordinator(refused):
            return self._commit_by_client(offsets, asynchronous=False)
        for code in refused.values():
            raise KafkaException(KafkaError(code))
        return offsets

    def _commit_by_client(
        self, offsets: Sequence[KafkaTopicPartition], *, asynchronous: bool
    ) -> Sequence[KafkaTopicPartition]:
        done = self._consumer.commit(offsets=offsets, asynchronous=asynchronous)
        self._client_answers_due += asynchronous
        return done or offsets

    def _has_no_coordinator(self, refused: Mapping[TopicPartition, int]) -> bool:
        """Return whether the coordinator has moved. Then the Kafka client commits, as it finds the new coordinator."""
        if NO_COORDINATOR_YET.isdisjoint(refused.values()):
            return False
        self._failed = self._clock()
        return True

    def _on_answer(self, commits: Commits, answer: dict[TopicPartition, int] | KafkaException) -> None:
        """Called on the connection's thread."""
        if isinstance(answer, KafkaException):
            self._failed = self._clock()
            refused = dict.fromkeys(commits, answer.args[0].str())
        else:
            self._has_no_coordinator(answer)
            refused = {tp: commit_refusal(KafkaError(code), is_member=True) for tp, code in answer.items()}
        self._idle.set()
        self._answered(commits, refused)


def open_commit_connection(
    handler: Handler, consumer: Any, brokers: str, *, answered: Callable[[Commits, Mapping[TopicPartition, str]], None]
) -> CommitConnection | None:
    """Return None if commits cannot wait behind a JoinGroup, or if kafka-python is missing or cannot connect."""
    waits_for_joins = handler.protocol == "classic" and handler.cooperates and not handler.is_self_managed
    commits_finished = handler.delivery == "at-least-once" and handler.offsets is None
    if handler.commit != "record" or not waits_for_joins or not commits_finished:
        return None
    try:
        # Imported here because they need kafka-python, an optional dependency.
        from penstock.kafka.client.kafka_python_settings import kafka_python_config  # noqa: PLC0415
        from penstock.kafka.group.coordinator import CoordinatorNetwork, Identity  # noqa: PLC0415

        network = CoordinatorNetwork(kafka_python_config(brokers, handler.named_settings))
    except PenstockError:
        return None
    connection = CommitConnection(consumer, handler.group, network, identity=Identity, answered=answered)
    try:
        connection.find_coordinator()
    except KafkaException:
        connection.close()
        return None
    return connection
