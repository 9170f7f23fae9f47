"""Checks and creates an app's topics before an engine starts."""

import time
from collections.abc import Callable

from penstock.app import App
from penstock.core.reports.events import Event, TopicCreated
from penstock.errors import PenstockError, TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.source_partitions import check_sources, source_topics

# How long a new topic may take to get its leaders, and how often to check.
_LEADER_SECONDS = 5.0
_CHECK_SECONDS = 0.05


def prepare_topics(app: App, cluster: Cluster, emit: Callable[[Event], None]) -> None:
    """Check that all sources exist; create missing output, dead-letter and retry topics.

    A created topic has as many partitions as its handler's source.
    """
    check_sources(app, cluster)
    for handler in app.handlers:
        sources = source_topics(handler, cluster)
        widest = max(sources.values(), default=1)  # a pattern may match nothing yet
        targets = {topic: widest for topic in (handler.to, handler.dead_letter) if topic is not None}
        targets |= {topic.name: sources[topic.source] for topic in handler.delayed.values()}
        if not app.create_topics:
            _require_targets(cluster, list(targets))
            continue
        created = [topic for topic in targets if cluster.create_topics([topic], partitions=targets[topic])]
        for topic in created:
            emit(TopicCreated(topic=topic, partitions=targets[topic]))
        _await_topics(cluster, [topic for topic in created if topic in handler.delayed])
    for pipeline in app.pipelines:
        widest = max(cluster.require_topics(pipeline.topics).values())
        if not app.create_topics:
            _require_targets(cluster, list(pipeline.target_topics))
            continue
        for topic in cluster.create_topics(pipeline.target_topics, partitions=widest):
            emit(TopicCreated(topic=topic, partitions=widest))


def _await_topics(cluster: Cluster, topics: list[str]) -> None:
    """Wait until the partitions of new topics have leaders. Consumers need them."""
    deadline = time.monotonic() + _LEADER_SECONDS
    while True:
        try:
            cluster.end_offsets(cluster.topic_partitions(topics))
        except PenstockError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_CHECK_SECONDS)
        else:
            return


def _require_targets(cluster: Cluster, targets: list[str]) -> None:
    try:
        cluster.require_topics(targets)
    except TopicError as error:
        raise TopicError(
            error.problem, hint=f"{error.hint} Or let the app create it: App(..., create_topics=True)."
        ) from error
