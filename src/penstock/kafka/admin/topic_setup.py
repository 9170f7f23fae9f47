"""Checks and creates an app's topics before an engine starts."""

from collections.abc import Callable

from penstock.app import App
from penstock.core.reports.events import Event, TopicCreated
from penstock.errors import TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.source_partitions import check_sources, source_topics


def prepare_topics(app: App, cluster: Cluster, emit: Callable[[Event], None]) -> None:
    """Check that all sources exist; create missing output, dead-letter and retry topics.

    A created topic has as many partitions as its handler's source.
    """
    check_sources(app, cluster)
    for handler in app.handlers:
        sources = source_topics(handler, cluster)
        widest = max(sources.values(), default=1)  # a pattern may match nothing yet
        targets = {topic: widest for topic in (*handler.output_topics, handler.dead_letter) if topic is not None}
        targets |= {topic.name: sources[topic.source] for topic in handler.delayed.values()}
        if not app.create_topics:
            _require_targets(cluster, list(targets))
            continue
        for topic, partitions in targets.items():
            if cluster.create_topics([topic], partitions=partitions):
                emit(TopicCreated(topic=topic, partitions=partitions))
    for pipeline in app.pipelines:
        widest = max(cluster.require_topics(pipeline.topics).values())
        if not app.create_topics:
            _require_targets(cluster, list(pipeline.target_topics))
            continue
        for topic in cluster.create_topics(pipeline.target_topics, partitions=widest):
            emit(TopicCreated(topic=topic, partitions=widest))


def _require_targets(cluster: Cluster, targets: list[str]) -> None:
    try:
        cluster.require_topics(targets)
    except TopicError as error:
        raise TopicError(
            error.problem, hint=f"{error.hint} Or let the app create it: App(..., create_topics=True)."
        ) from error
