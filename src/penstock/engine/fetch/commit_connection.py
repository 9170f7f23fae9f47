"""Commits of a native member on a connection of their own."""

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
from penstock.kafka.admin.cluster import NO_COORDINATOR_YET
from penstock.kafka.client.transactions import member_in
from penstock.kafka.errors import commit_refusal

# How long the coordinator may take to be found on the new connection, before the member joins.
_FIND_SECONDS = 5.0
# Longer than the connection's own timeout, after which it answers a commit with an error.
_ANSWER_SECONDS = 30.0
# After a failure the Kafka client commits for so long.
_CLIENT_SECONDS = 30.0


class CommitConnection:
    """Stands in for the Kafka client where a member commits: the same member and generation, another connection.

    A broker answers the requests of one connection in order, and it answers a JoinGroup when the last member has
    joined. On the client's connection, a commit that is sent after its JoinGroup is read only then, and refused because
    its generation is over: what was finished meanwhile stays uncommitted. On another connection the broker accepts it.

    The committed offset must never move backwards because there are two connections, so only one is in use at a time:

    - A commit on this connection begins when the one before has its answer. So commits reach the broker in order, the
      last one of a revoke too (``asynchronous=False`` waits for the one under way).
    - If this connection fails, the client commits for the next 30 s, with the same or a later offset. kafka-python has
      closed the connection by then, so the request that failed was read, or never will be. The exception is a broker
      that stands still for longer than the request's timeout and then goes on: it may read that request after a later
      one, as with every Kafka client.
    - The client hands back to this connection only when it owes no answer. A commit of the client that waits behind its
      JoinGroup is thus refused, or accepted, before a later one is sent here.
    - A commit that is under way while a partition is revoked is answered before the last commit of that partition is
      sent, and the partition has no new owner before that. If the member is lost, the broker knows its id no more.

    Used on the fetcher's thread; ``answered`` is called on the connection's thread as soon as the broker has answered.
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
        self._line = network.line(group)
        self._identity = identity
        self._answered = answered
        self._clock = clock
        self._idle = threading.Event()
        self._idle.set()
        self._failed = -inf  # when this connection failed last
        self._client_owes = 0  # answers to commits of the client

    def find_coordinator(self) -> None:
        self._line.reach(seconds=_FIND_SECONDS)

    def close(self) -> None:
        """A commit that is under way is answered with an error."""
        self._network.close()

    def client_answered(self) -> None:
        """To a commit that the client made in the background."""
        self._client_owes = max(0, self._client_owes - 1)

    def commit(self, *, offsets: Sequence[KafkaTopicPartition], asynchronous: bool) -> Sequence[KafkaTopicPartition]:
        """As the client's own."""
        if self._client_owes or self._clock() < self._failed + _CLIENT_SECONDS:
            return self._commit_by_client(offsets, asynchronous=asynchronous)
        if not self._idle.wait(_ANSWER_SECONDS):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
        found = member_in(self._consumer.consumer_group_metadata(), self._group)
        if found is None:
            return self._commit_by_client(offsets, asynchronous=asynchronous)
        member = self._identity(self._group, *found)
        commits = {(each.topic, each.partition): (each.offset, each.metadata or "") for each in offsets}
        if asynchronous:
            self._idle.clear()
            self._line.commit_later(member, commits, lambda answer: self._on_answer(commits, answer))
            return offsets
        try:
            refused = self._line.commit(member, commits)
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
        self._client_owes += asynchronous
        return done or offsets

    def _has_no_coordinator(self, refused: Mapping[TopicPartition, int]) -> bool:
        """Whether the coordinator has moved. Then the Kafka client commits: it finds the new coordinator itself."""
        if NO_COORDINATOR_YET.isdisjoint(refused.values()):
            return False
        self._failed = self._clock()
        return True

    def _on_answer(self, commits: Commits, answer: dict[TopicPartition, int] | KafkaException) -> None:
        """On the connection's thread."""
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
    """None where the member's commits wait for nobody, or kafka-python is missing or cannot connect."""
    waits_for_joins = handler.protocol == "classic" and handler.cooperates and not handler.is_open
    commits_finished = handler.delivery == "at-least-once" and handler.offsets is None
    if handler.commit != "record" or not waits_for_joins or not commits_finished:
        return None
    try:
        # Imported here because they need a library that comes with an extra.
        from penstock.kafka.client.kafka_python_settings import open_settings  # noqa: PLC0415
        from penstock.kafka.group.coordinator import Identity, Network  # noqa: PLC0415

        network = Network(open_settings(brokers, handler.named_settings))
    except PenstockError:
        return None
    connection = CommitConnection(consumer, handler.group, network, identity=Identity, answered=answered)
    try:
        connection.find_coordinator()
    except KafkaException:
        connection.close()
        return None
    return connection
