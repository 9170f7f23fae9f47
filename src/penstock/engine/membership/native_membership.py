"""Being a member of the group: what is assigned, given back and lost, on the fetcher's thread."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from penstock.app import Handler
from penstock.core.records.record import TopicPartition as Place
from penstock.core.reports.rebalance import Rebalance
from penstock.engine.dispatch.thread_messages import Assigned, Commits, Inbox, Lost, Revoking, Trouble
from penstock.engine.fetch.commit_sender import Committer
from penstock.engine.fetch.fetch_positions import Flow
from penstock.engine.fetch.start_positions import FirstTimes, find_positions
from penstock.engine.fetch.store_session import Keeper
from penstock.engine.observe.rebalance_recorder import Chronicle
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
        committer: Committer,
        first_times: FirstTimes,
        keeper: Keeper | None,
        stay_awake: Callable[[Sequence[Place]], None],
        tell: Callable[[Rebalance], None],
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._consumer = consumer
        self._committer = committer
        self._first_times = first_times
        self._keeper = keeper
        self._stay_awake = stay_awake
        self._tell = tell
        self._chronicle = Chronicle(handler, consumer, tell)
        self._over = False
        self.flow = Flow(consumer, cooperates=handler.cooperates, only_fetches=handler.is_open)
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
            self._revoke([*self.flow.owned])
        self._chronicle.leaving()
        self._consumer.close()
        self._chronicle.left()

    def start_over(self, *, seconds: float) -> bool:  # noqa: ARG002 - this one cannot
        """Let everything go, and take it as it is committed after so long; False where that takes a new consumer."""
        return False

    def on_statistics(self, text: str) -> None:
        self._chronicle.on_statistics(text)

    def break_off(self) -> None:
        """The consumer is not to be used any more: all is lost, and what it still calls back means nothing."""
        owned = [*self.flow.owned]
        self._lose(owned)
        self._chronicle.broke_off(owned)
        self._over = True
        with suppress(RuntimeError):  # it broke while it was closing
            self._consumer.close()

    # The client's callbacks.

    def _on_assign(self, places: Sequence[Place]) -> None:
        self._chronicle.begin()
        self._assign(places)
        self._chronicle.took(places)

    def _on_revoke(self, places: Sequence[Place]) -> None:
        self._chronicle.begin()
        self._revoke(places)
        self._chronicle.gave_up(places)

    def _on_lost(self, places: Sequence[Place]) -> None:
        self._lose(places)
        self._chronicle.lost(places)

    def _get_to_know(self, places: Sequence[Place]) -> None:
        """A client that is no member learns of a topic when it fetches, and then takes a second to find its leader."""
        for topic in {topic for topic, _ in places}:
            self._consumer.list_topics(topic, timeout=_ANSWER_SECONDS)

    # What they mean.

    def _assign(self, places: Sequence[Place]) -> None:
        if self._over:
            return
        assigned = find_positions(self._consumer, self._handler, places, self._first_times, self._keeper)
        # Where the user's function fails, these partitions stay unknown: what comes of them is dropped, uncommitted.
        if not self._call("on_assigned", places):
            return
        self._committer.assigned(places)
        self._inbox.put(assigned)
        if places:
            self.flow.add({place: _start(assigned, place) for place in places})

    def _revoke(self, places: Sequence[Place]) -> None:
        places = [place for place in places if place in self.flow.owned]
        if self._over or not places:
            return
        answer: SimpleQueue[Commits] = SimpleQueue()
        self._inbox.put(Revoking(places, answer))
        self._committer.commit_at_last(self.commits_as, self._await(answer, places))
        self._disown(places)
        self._call("on_revoked", places)

    def _await(self, answer: "SimpleQueue[Commits]", places: Sequence[Place]) -> Commits:
        """The dispatcher's answer to a revoke. The partitions that stay are worked on meanwhile."""
        deadline = time.monotonic() + self._handler.drain_timeout + _ANSWER_GRACE_SECONDS
        while time.monotonic() < deadline:
            with suppress(Empty):
                return answer.get(timeout=_AWAKE_SECONDS)
            self._stay_awake(places)
        return {}

    def _lose(self, places: Sequence[Place]) -> None:
        places = [place for place in places if place in self.flow.owned]
        if self._over or not places:
            return
        self._committer.lost()
        self._inbox.put(Lost(places))
        self._disown(places)
        self._call("on_lost", places)

    def _disown(self, places: Sequence[Place]) -> None:
        self.flow.remove(places)
        self._committer.gone(places)

    def _call(self, option: str, places: Sequence[Place]) -> bool:
        """Whether the user's function, if there is one, is content."""
        function = getattr(self._handler, option)
        if function is None or not places:
            return True
        try:
            function(list(places))
        except Exception as error:  # noqa: BLE001 - whatever it raises stops the app
            problem = f"{option} of handler {self._handler.name} raised {type(error).__name__}: {error}."
            hint = "Mend it and start again: what was not committed will be delivered again."
            self._inbox.put(Trouble(CallbackError(problem, hint=hint), fatal=True))
            return False
        return True


def _start(assigned: Assigned, place: Place) -> int | None:
    commit = assigned.committed[place]
    return assigned.starts[place] if place in assigned.starts or commit is None else commit[0]


def _calling(function: Callable[[Sequence[Place]], None], partitions: Sequence[TopicPartition]) -> None:
    """Inside a callback. What the client raises in there comes out of the poll as a bare KafkaError.

    That is no exception, so no ``except`` would name it; raised anew, it comes out as what it is.
    """
    try:
        function(_places(partitions))
    except KafkaException as error:
        raise KafkaException(*error.args) from error


def _places(partitions: Sequence[TopicPartition]) -> list[Place]:
    return [(each.topic, each.partition) for each in partitions]
