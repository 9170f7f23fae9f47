"""The topics that a self-managed member subscribes to, and whether they have changed since it joined."""

import time
from collections.abc import Mapping
from contextlib import suppress

from confluent_kafka import KafkaException

from penstock.app import Handler
from penstock.assign import Topic
from penstock.core.reports.rebalance import PARTITIONS_CHANGED, TOPICS_CHANGED, GroupSnapshot, Reason
from penstock.kafka.client.clients import CONSUMER_DEFAULTS
from penstock.kafka.group.coordinator import CoordinatorConnection

_REFRESH = "topic.metadata.refresh.interval.ms"


class SubscribedTopics:
    """Only the group thread uses it."""

    def __init__(self, handler: Handler, connection: CoordinatorConnection) -> None:
        self._handler = handler
        self._connection = connection
        self._interval = handler.settings.get(_REFRESH, CONSUMER_DEFAULTS[_REFRESH]) / 1000
        self._joined_with: frozenset[str] = frozenset()
        self.next_check = 0.0
        """When to look for changes again."""

    def current(self) -> frozenset[str]:
        """Return the topics to subscribe to; a pattern is matched with the topics of the cluster."""
        if self._handler.pattern is None:
            return frozenset(self._handler.consumed_topics)
        return frozenset(topic for topic in self._connection.topics(None) if self._handler.consumes(topic))

    def joined(self, topics: frozenset[str]) -> None:
        """The member has joined with these topics."""
        self._joined_with = topics

    def check_later(self) -> None:
        self.next_check = time.monotonic() + self._interval

    def check(self, view: GroupSnapshot | None) -> Reason | None:
        """Return why the member must rejoin, if it must: its topics changed, or the number of their partitions.

        ``view`` is the group of the last rebalance if this member is its leader; only the leader counts partitions.
        """
        self.check_later()
        with suppress(KafkaException):  # the next check asks again
            if self.current() != self._joined_with:
                return TOPICS_CHANGED
            if view is not None:
                known = self._connection.topics(set().union(*view.topics.values()))
                if _counts(known) != view.partitions:
                    return PARTITIONS_CHANGED
        return None


def _counts(topics: Mapping[str, Topic]) -> dict[str, int]:
    return {name: topic.partitions for name, topic in topics.items()}
