"""Commits what Spark has finished to the consumer group, so that lag tools see Spark like any other consumer."""

from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import CommitFailed, Committed, Error, Event
from penstock.errors import PenstockError, ServerError
from penstock.kafka import Cluster
from penstock.spark.pipelines.resume_offsets import Offsets

# The member name in events: Spark is not a member of the group.
MEMBER = "spark"


class Commits(Protocol):
    """Commits offsets: through the cluster, with a note, or not at all (tasks commit)."""

    def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str], /
    ) -> None: ...


class GroupOffsets:
    """Commits only forward: never an offset below the ``known`` one of a partition."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        known: Mapping[TopicPartition, int],
        emit: Callable[[Event], None],
        *,
        commits: Commits | None = None,
    ) -> None:
        self._cluster = cluster
        self._commits = commits or cluster
        self._group = group
        self._known = dict(known)
        self._emit = emit
        self._contested = False

    def advance(self, finished: Mapping[TopicPartition, int]) -> None:
        """Commit offsets that moved. Reports a failure without raising it: the next call commits these offsets too."""
        moved = self._moved(finished)
        try:
            if moved and self._contested:
                # The members may have committed meanwhile.
                self._known.update(self._cluster.committed(self._group, moved))
                moved = self._moved(finished)
            self._commits.commit(self._group, moved, {})
        except PenstockError as error:
            self._refused(moved, error)
            return
        if moved and self._contested:
            self._contested = False
            self._warn(f"Group {self._group!r} has no other members any more: Spark's commits are accepted again.")
        self._known.update(moved)
        for (topic, partition), offset in moved.items():
            self._emit(Committed(group=self._group, member=MEMBER, topic=topic, partition=partition, offset=offset))

    def _moved(self, finished: Mapping[TopicPartition, int]) -> Offsets:
        return {tp: offset for tp, offset in finished.items() if offset > self._known.get(tp, -1)}

    def _refused(self, moved: Offsets, error: PenstockError) -> None:
        if self._has_members():
            if not self._contested:
                self._contested = True
                self._warn(
                    f"Group {self._group!r} has members now, which handle the same records again and keep Spark from "
                    "committing. Spark continues, and its checkpoint has the progress. Stop these members: Spark "
                    "commits as soon as they have left."
                )
            return
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

    def _has_members(self) -> bool:
        try:
            return self._cluster.members(self._group) > 0
        except PenstockError:
            return False

    def _warn(self, reason: str) -> None:
        self._emit(Error(group=self._group, reason=reason, fatal=False))


def refuse_members(cluster: Cluster, group: str) -> None:
    """Refuse a group with members: Spark is not a member, so they would handle the same records."""
    members = cluster.members(group)
    if members:
        raise ServerError(
            f"Group {group!r} has {members} active {'member' if members == 1 else 'members'}, "
            "which would handle the same records again and keep Spark from committing.",
            hint='Stop them first, or run this handler in a group of its own: @app.consume(..., group="...").',
        )
