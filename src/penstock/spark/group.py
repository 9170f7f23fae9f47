"""The group's offsets, kept up with what Spark has finished, so that lag tools see it like any other consumer."""

from collections.abc import Callable, Mapping

from penstock.core.events import CommitFailed, Committed, Event
from penstock.core.record import TopicPartition
from penstock.errors import PenstockError, ServerError
from penstock.kafka import Cluster

# Spark consumes outside of the group's membership, as one.
MEMBER = "spark"


class GroupOffsets:
    """Commits only forward: what is not above the ``known`` offset of a partition stays as it is."""

    def __init__(
        self, cluster: Cluster, group: str, known: Mapping[TopicPartition, int], emit: Callable[[Event], None]
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._known = dict(known)
        self._emit = emit

    def advance(self, finished: Mapping[TopicPartition, int]) -> None:
        """Commit what moved. A refusal is reported and not raised: the next call carries its offsets too."""
        moved = {place: offset for place, offset in finished.items() if offset > self._known.get(place, -1)}
        try:
            self._cluster.commit(self._group, moved)
        except PenstockError as error:
            for (topic, partition), offset in moved.items():
                self._emit(
                    CommitFailed(
                        group=self._group,
                        member=MEMBER,
                        topic=topic,
                        partition=partition,
                        offset=offset,
                        reason=error.problem,
                    )
                )
            return
        self._known.update(moved)
        for (topic, partition), offset in moved.items():
            self._emit(Committed(group=self._group, member=MEMBER, topic=topic, partition=partition, offset=offset))


def refuse_members(cluster: Cluster, group: str) -> None:
    """Spark is no member of the group it commits for, so others would handle the same records."""
    members = cluster.members(group)
    if members:
        raise ServerError(
            f"Group {group!r} has {members} active {'member' if members == 1 else 'members'}, "
            "which would handle the same records again and keep Spark from committing.",
            hint='Stop them first, or run this handler in a group of its own: @app.consume(..., group="...").',
        )
