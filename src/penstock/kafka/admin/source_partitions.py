"""The topics and partitions that a handler consumes, as the cluster has them now."""

from collections.abc import Container, Iterable, Mapping
from itertools import combinations

from penstock.app import App, Handler, Start
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, ServerError, TopicError
from penstock.kafka.admin.cluster import Cluster


def source_topics(handler: Handler, cluster: Cluster) -> dict[str, int]:
    """Return topics with their numbers of partitions. Raise if a named topic is missing; a pattern may match none."""
    if handler.pattern is not None:
        return {topic: count for topic, count in sorted(cluster.topics().items()) if handler.consumes(topic)}
    return cluster.require_topics(handler.topics or dict.fromkeys(topic for topic, _ in handler.partitions))


def source_partitions(handler: Handler, cluster: Cluster) -> list[TopicPartition]:
    topics = source_topics(handler, cluster)
    if not handler.partitions:
        return [(topic, number) for topic, count in topics.items() for number in range(count)]
    for topic, number in handler.partitions:
        if number >= topics[topic]:
            raise TopicError(
                f"Topic {topic!r} has no partition {number}.",
                hint=f"Use partitions 0 to {topics[topic] - 1}.",
            )
    return list(handler.partitions)


def source_lag(handler: Handler, cluster: Cluster, tps: Iterable[TopicPartition]) -> int:
    """Return the number of records from the handler's start positions to the ends of these partitions."""
    tps = list(tps)
    ends, starts = cluster.end_offsets(tps), cluster.start_offsets(tps)
    begin = {**positions(handler.start, cluster, tps), **cluster.committed(handler.group, tps)}
    begin.update(forced_positions(handler, cluster, tps))
    return sum(max(0, ends[tp] - max(starts[tp], begin[tp] or 0)) for tp in tps)


def positions(
    start: Start, cluster: Cluster, tps: Iterable[TopicPartition], *, added: Container[TopicPartition] = ()
) -> dict[TopicPartition, int | None]:
    """Return the offset that ``start`` means for each partition; None is the start of the log when it is read.

    ``added`` partitions were created after the run began, so all their records are new: they begin at their start
    where ``start`` means the end, or a time.
    """
    tps = list(tps)
    if start == "earliest":
        return dict.fromkeys(tps)
    if isinstance(start, Mapping):
        return {tp: start.get(tp) for tp in tps}
    known = [tp for tp in tps if tp not in added]
    found = cluster.end_offsets(known) if start == "latest" else cluster.offsets_at(known, start)
    return {**dict.fromkeys(tps), **found}


def forced_positions(
    handler: Handler, cluster: Cluster, tps: Iterable[TopicPartition], *, added: Container[TopicPartition] = ()
) -> dict[TopicPartition, int | None]:
    """The same for ``from_``; partitions that it leaves alone are left out."""
    start = handler.from_
    if start is None:
        return {}
    tps = [tp for tp in tps if not isinstance(start, Mapping) or tp in start]
    return positions(start, cluster, tps, added=added)


def check_sources(app: App, cluster: Cluster) -> None:
    """What can be seen only here: partitions that do not exist, and records that two handlers would share."""
    tps = [(handler, set(source_partitions(handler, cluster))) for handler in app.handlers]
    for (one, its), (other, others) in combinations(tps, 2):
        shared = its & others
        if shared and one.group == other.group:
            topic, _ = min(shared)
            raise ConfigError(
                f"Handlers {one.name} and {other.name} both consume {topic!r} in group {one.group!r}, "
                "so each would get only a part of it.",
                hint='Give one of them its own group: @app.consume(..., group="...").',
            )
    for handler in app.handlers:
        if handler.partitions and cluster.members(handler.group):
            raise ServerError(
                f"Group {handler.group!r} has active members, so the broker refuses the commits of {handler.name}, "
                "which uses partitions= and does not join the group.",
                hint='Stop the members first, or give this handler another group: @app.consume(..., group="...").',
            )
