"""Group membership by the Kafka client: assign, revoke and lose partitions. Runs on the fetcher thread."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.app.resources import never_closed
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import Rebalance
from penstock.engine.dispatch.thread_messages import Assigned, Commits, EngineError, Inbox, Lost, Revoking
from penstock.engine.fetch.commit_sender import CommitSender
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.engine.fetch.start_positions import KnownPartitions, find_positions
from penstock.engine.fetch.store_session import StoreSession
from penstock.engine.observe.rebalance_recorder import RebalanceRecorder
from penstock.errors import CallbackError
from penstock.kafka import close_member

# How much longer than drain_timeout the dispatcher may take to answer a revoke.
_ANSWER_GRACE_SECONDS = 5.0
_DRAIN_CHECK_SECONDS = 0.05
_ANSWER_SECONDS = 10.0

OnGone = Callable[[Sequence[TopicPartition]], "Future[None] | None"]
"""Closes the resources of partitions; returns when that has ended, None if there are none."""


class NativeMembership:
    """The membership of one consumer, from join to leave. A handler with ``partitions=`` uses it without a group join.

    The client runs its callbacks on the fetcher thread, inside ``consume`` and ``close``. After ``on_revoke`` the
    client unassigns the partitions.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        consumer: Any,
        *,
        commit_sender: CommitSender,
        known_partitions: KnownPartitions,
        store_session: StoreSession | None,
        during_drain: Callable[[Sequence[TopicPartition]], None],
        on_rebalance: Callable[[Rebalance], None],
        on_gone: OnGone = lambda _tps: None,
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._consumer = consumer
        self._commit_sender = commit_sender
        self._known_partitions = known_partitions
        self._store_session = store_session
        self._during_drain = during_drain
        self._on_rebalance = on_rebalance
        self._on_gone = on_gone
        self._recorder = RebalanceRecorder(handler, consumer, on_rebalance)
        self._over = False
        self.positions = FetchPositions(consumer, cooperates=handler.cooperates, only_fetches=handler.is_self_managed)
        self.committer = consumer
        """Makes the commits: the consumer, its CommitConnection, or a self-managed membership."""

    def join(self) -> None:
        handler = self._handler
        if handler.partitions:
            self._load_metadata(handler.partitions)
            self._assign(handler.partitions)
            return
        # The client reads a topic that begins with ^ as a regular expression, and matches any part of a name.
        topics = list(handler.consumed_topics) if handler.pattern is None else [f"^({handler.pattern})$"]
        self._consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: _run_callback(self._on_assign, partitions),
            on_revoke=lambda _, partitions: _run_callback(self._on_revoke, partitions),
            on_lost=lambda _, partitions: _run_callback(self._on_lost, partitions),
        )

    def attend(self) -> None:
        """The fetcher calls it between two polls. The client does this work inside ``consume``."""

    def leave(self) -> None:
        """Drain and commit all partitions, and leave the group."""
        if self._handler.partitions:
            self._revoke([*self.positions.owned])
        self._recorder.leaving()
        close_member(self._consumer, owns_partitions=bool(self.positions.owned))
        self._recorder.left()

    def start_over(self, *, seconds: float) -> bool:  # noqa: ARG002 - the Kafka client needs a new consumer for that
        """Lose all partitions, and take them again at their committed offsets after ``seconds``.

        False if only a new consumer can do that.
        """
        return False

    def on_statistics(self, text: str) -> None:
        self._recorder.on_statistics(text)

    def abandon(self) -> None:
        """Close a broken consumer: all its partitions are lost, and its later callbacks are ignored."""
        owned = [*self.positions.owned]
        self._lose(owned)
        self._recorder.broke_off(owned)
        self._over = True
        with suppress(RuntimeError):  # close() itself had failed
            self._consumer.close()

    # The client's callbacks.

    def _on_assign(self, tps: Sequence[TopicPartition]) -> None:
        self._recorder.begin()
        self._assign(tps)
        self._recorder.took(tps)

    def _on_revoke(self, tps: Sequence[TopicPartition]) -> None:
        self._recorder.begin()
        self._revoke(tps)
        self._recorder.gave_up(tps)

    def _on_lost(self, tps: Sequence[TopicPartition]) -> None:
        self._lose(tps)
        self._recorder.lost(tps)

    def _load_metadata(self, tps: Sequence[TopicPartition]) -> None:
        """Load the metadata of these topics.

        Without a group, the client needs a second to find a leader by fetching.
        """
        for topic in {topic for topic, _ in tps}:
            self._consumer.list_topics(topic, timeout=_ANSWER_SECONDS)

    # Ownership.

    def _assign(self, tps: Sequence[TopicPartition]) -> None:
        if self._over:
            return
        assigned = find_positions(self._consumer, self._handler, tps, self._known_partitions, self._store_session)
        # If on_assigned fails, the dispatcher does not own these partitions: it drops their records uncommitted.
        if not self._call("on_assigned", tps):
            return
        self._commit_sender.assigned(tps)
        self._inbox.put(assigned)
        if tps:
            self.positions.add({tp: _start(assigned, tp) for tp in tps})

    def _revoke(self, tps: Sequence[TopicPartition]) -> None:
        tps = [tp for tp in tps if tp in self.positions.owned]
        if self._over or not tps:
            return
        answer: SimpleQueue[Commits] = SimpleQueue()
        self._inbox.put(Revoking(tps, answer))
        self._commit_sender.commit_last(self.committer, self._await_drain(answer, tps))
        self._remove(tps)
        self._close_resources(tps)
        self._call("on_revoked", tps)

    def _await_drain(self, answer: "SimpleQueue[Commits]", tps: Sequence[TopicPartition]) -> Commits:
        """Wait for the dispatcher's answer to a revoke. The retained partitions are consumed during the wait."""
        deadline = time.monotonic() + self._handler.drain_timeout + _ANSWER_GRACE_SECONDS
        while time.monotonic() < deadline:
            with suppress(Empty):
                return answer.get(timeout=_DRAIN_CHECK_SECONDS)
            self._during_drain(tps)
        return {}

    def _close_resources(self, tps: Sequence[TopicPartition]) -> None:
        """Close the resources of committed partitions before another member gets them."""
        closing = self._on_gone(tps)
        if closing is None:
            return
        deadline = time.monotonic() + self._handler.drain_timeout
        while not wait([closing], _DRAIN_CHECK_SECONDS).done:
            if time.monotonic() > deadline:
                names = ", ".join(each.name for each in self._handler.wiring.of_partition)
                what = f"The resources of {len(tps)} revoked partitions ({names})"
                self._inbox.put(EngineError(never_closed(what, self._handler.drain_timeout), fatal=True))
                return
            self._during_drain(tps)

    def _lose(self, tps: Sequence[TopicPartition]) -> None:
        tps = [tp for tp in tps if tp in self.positions.owned]
        if self._over or not tps:
            return
        self._commit_sender.lost()
        self._inbox.put(Lost(tps))
        self._remove(tps)
        self._on_gone(tps)
        self._call("on_lost", tps)

    def _remove(self, tps: Sequence[TopicPartition]) -> None:
        self.positions.remove(tps)
        self._commit_sender.gone(tps)

    def _call(self, option: str, tps: Sequence[TopicPartition]) -> bool:
        """Call the user's function, if there is one; return False, and stop the app, if it raises."""
        function = getattr(self._handler, option)
        if function is None or not tps:
            return True
        try:
            function(list(tps))
        except Exception as error:  # noqa: BLE001 - any exception stops the app
            problem = f"{option} of handler {self._handler.name} raised {type(error).__name__}: {error}."
            hint = f"Fix {option} and start the app again. Kafka redelivers the records that were not committed."
            self._inbox.put(EngineError(CallbackError(problem, hint=hint), fatal=True))
            return False
        return True


def _start(assigned: Assigned, tp: TopicPartition) -> int | None:
    commit = assigned.committed[tp]
    return assigned.starts[tp] if tp in assigned.starts or commit is None else commit[0]


def _run_callback(
    function: Callable[[Sequence[TopicPartition]], None], partitions: Sequence[KafkaTopicPartition]
) -> None:
    """Run the body of a client's callback, and raise a new KafkaException for each that it raises.

    ``consume`` turns a KafkaException of the client's own calls into a bare KafkaError, which is not an exception, so
    no ``except`` can catch it. A new KafkaException passes through unchanged.
    """
    try:
        function(_tps(partitions))
    except KafkaException as error:
        raise KafkaException(*error.args) from error


def _tps(partitions: Sequence[KafkaTopicPartition]) -> list[TopicPartition]:
    return [(each.topic, each.partition) for each in partitions]
