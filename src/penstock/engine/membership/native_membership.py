"""Being a member of the group: what is assigned, given back and lost, on the fetcher's thread."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.core.reports.rebalance import Rebalance
from penstock.engine.dispatch.thread_messages import Assigned, Commits, EngineError, Inbox, Lost, Revoking
from penstock.engine.fetch.commit_sender import CommitSender
from penstock.engine.fetch.fetch_positions import FetchPositions
from penstock.engine.fetch.start_positions import FirstTimes, find_positions
from penstock.engine.fetch.store_session import StoreSession
from penstock.engine.observe.rebalance_recorder import RebalanceRecorder
from penstock.errors import CallbackError

# How much longer than the drain timeout the dispatcher may take to answer a revoke.
_ANSWER_GRACE_SECONDS = 5.0
_AWAKE_SECONDS = 0.05
_ANSWER_SECONDS = 10.0


class Membership:
    """Of one consumer, from joining to leaving; a handler that names its partitions only seems to be a member.

    The client calls back on the fetcher's thread, inside ``consume`` and ``close``. After a revoke it takes the
    partitions out by itself, as its protocol asks for.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        consumer: Any,
        *,
        commit_sender: CommitSender,
        first_times: FirstTimes,
        store_session: StoreSession | None,
        stay_awake: Callable[[Sequence[TopicPartition]], None],
        tell: Callable[[Rebalance], None],
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._consumer = consumer
        self._commit_sender = commit_sender
        self._first_times = first_times
        self._store_session = store_session
        self._stay_awake = stay_awake
        self._tell = tell
        self._recorder = RebalanceRecorder(handler, consumer, tell)
        self._over = False
        self.positions = FetchPositions(consumer, cooperates=handler.cooperates, only_fetches=handler.is_open)
        self.commits_as = consumer
        """Commits are made by whoever is the member."""

    def join(self) -> None:
        handler = self._handler
        if handler.partitions:
            self._get_to_know(handler.partitions)
            self._assign(handler.partitions)
            return
        # The client takes a name with this first letter for an expression, and finds it anywhere in a name.
        topics = list(handler.consumed_topics) if handler.pattern is None else [f"^({handler.pattern})$"]
        self._consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: _calling(self._on_assign, partitions),
            on_revoke=lambda _, partitions: _calling(self._on_revoke, partitions),
            on_lost=lambda _, partitions: _calling(self._on_lost, partitions),
        )

    def attend(self) -> None:
        """Between two polls."""

    def leave(self) -> None:
        """Give everything back, which drains and commits it."""
        if self._handler.partitions:
            self._revoke([*self.positions.owned])
        self._recorder.leaving()
        self._consumer.close()
        self._recorder.left()

    def start_over(self, *, seconds: float) -> bool:  # noqa: ARG002 - this one cannot
        """Let everything go, and take it as it is committed after so long; False where that takes a new consumer."""
        return False

    def on_statistics(self, text: str) -> None:
        self._recorder.on_statistics(text)

    def break_off(self) -> None:
        """The consumer is not to be used any more: all is lost, and what it still calls back means nothing."""
        owned = [*self.positions.owned]
        self._lose(owned)
        self._recorder.broke_off(owned)
        self._over = True
        with suppress(RuntimeError):  # it broke while it was closing
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

    def _get_to_know(self, tps: Sequence[TopicPartition]) -> None:
        """A client that is no member learns of a topic when it fetches, and then takes a second to find its leader."""
        for topic in {topic for topic, _ in tps}:
            self._consumer.list_topics(topic, timeout=_ANSWER_SECONDS)

    # What they mean.

    def _assign(self, tps: Sequence[TopicPartition]) -> None:
        if self._over:
            return
        assigned = find_positions(self._consumer, self._handler, tps, self._first_times, self._store_session)
        # Where the user's function fails, these partitions stay unknown: what comes of them is dropped, uncommitted.
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
        self._commit_sender.commit_at_last(self.commits_as, self._await(answer, tps))
        self._disown(tps)
        self._call("on_revoked", tps)

    def _await(self, answer: "SimpleQueue[Commits]", tps: Sequence[TopicPartition]) -> Commits:
        """The dispatcher's answer to a revoke. The partitions that stay are worked on meanwhile."""
        deadline = time.monotonic() + self._handler.drain_timeout + _ANSWER_GRACE_SECONDS
        while time.monotonic() < deadline:
            with suppress(Empty):
                return answer.get(timeout=_AWAKE_SECONDS)
            self._stay_awake(tps)
        return {}

    def _lose(self, tps: Sequence[TopicPartition]) -> None:
        tps = [tp for tp in tps if tp in self.positions.owned]
        if self._over or not tps:
            return
        self._commit_sender.lost()
        self._inbox.put(Lost(tps))
        self._disown(tps)
        self._call("on_lost", tps)

    def _disown(self, tps: Sequence[TopicPartition]) -> None:
        self.positions.remove(tps)
        self._commit_sender.gone(tps)

    def _call(self, option: str, tps: Sequence[TopicPartition]) -> bool:
        """Whether the user's function, if there is one, is content."""
        function = getattr(self._handler, option)
        if function is None or not tps:
            return True
        try:
            function(list(tps))
        except Exception as error:  # noqa: BLE001 - whatever it raises stops the app
            problem = f"{option} of handler {self._handler.name} raised {type(error).__name__}: {error}."
            hint = "Mend it and start again: what was not committed will be delivered again."
            self._inbox.put(EngineError(CallbackError(problem, hint=hint), fatal=True))
            return False
        return True


def _start(assigned: Assigned, tp: TopicPartition) -> int | None:
    commit = assigned.committed[tp]
    return assigned.starts[tp] if tp in assigned.starts or commit is None else commit[0]


def _calling(function: Callable[[Sequence[TopicPartition]], None], partitions: Sequence[KafkaTopicPartition]) -> None:
    """Inside a callback. What the client raises in there comes out of the poll as a bare KafkaError.

    That is no exception, so no ``except`` would name it; raised anew, it comes out as what it is.
    """
    try:
        function(_tps(partitions))
    except KafkaException as error:
        raise KafkaException(*error.args) from error


def _tps(partitions: Sequence[KafkaTopicPartition]) -> list[TopicPartition]:
    return [(each.topic, each.partition) for each in partitions]
