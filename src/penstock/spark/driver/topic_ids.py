"""Finds topics that were deleted and recreated: their offsets belong to another log, however long that is."""

from collections.abc import Iterable

from penstock.kafka import Cluster


class TopicIds:
    def __init__(self, cluster: Cluster, topics: Iterable[str]) -> None:
        self._cluster = cluster
        self._known = cluster.topic_ids(topics)

    def renewed(self, topics: Iterable[str]) -> set[str]:
        """Return those of these topics that were recreated since the last call."""
        ids = self._cluster.topic_ids(topics)
        renewed = {topic for topic, found in ids.items() if self._known.get(topic, found) != found}
        self._known.update(ids)
        return renewed
