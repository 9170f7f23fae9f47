"""What must hold in the cluster before an engine starts."""

from collections.abc import Callable

from penstock.app import App
from penstock.core.events import Event, TopicCreated
from penstock.errors import TopicError
from penstock.kafka.cluster import Cluster
from penstock.kafka.sources import check_sources, source_topics


def prepare_topics(app: App, cluster: Cluster, emit: Callable[[Event], None]) -> None:
    """Every source exists; every output and dead-letter topic exists or is created like its handler's source."""
    check_sources(app, cluster)
    for handler in app.handlers:
        # A pattern may match nothing yet.
        partitions = max(source_topics(handler, cluster).values(), default=1)
        targets = [topic for topic in (handler.to, handler.dead_letter) if topic is not None]
        if app.create_topics:
            for topic in cluster.create_topics(targets, partitions=partitions):
                emit(TopicCreated(topic=topic, partitions=partitions))
        else:
            _require_targets(cluster, targets)


def _require_targets(cluster: Cluster, targets: list[str]) -> None:
    try:
        cluster.require_topics(targets)
    except TopicError as error:
        raise TopicError(
            error.problem, hint=f"{error.hint} Or let the app create it: App(..., create_topics=True)."
        ) from error
