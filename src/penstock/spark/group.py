"""The group's offsets, kept up with what Spark has finished, so that lag tools see it like any other consumer."""

from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.core.progress.offset_map import encode
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import CommitFailed, Committed, Error, Event
from penstock.errors import PenstockError, ServerError
from penstock.kafka import Cluster
from penstock.spark.finished import Finished, above
from penstock.spark.offsets import Offsets

# Spark consumes outside of the group's membership, as one.
MEMBER = "spark"


class Commits(Protocol):
    """How commits are made: by the cluster, or not here at all."""

    def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str], /
    ) -> None: ...


class GroupOffsets:
    """Commits only forward: what is not above the ``known`` offset of a partition stays as it is.

    ``finished`` are the records that the local engine had finished ahead: until Spark is past them, each commit tells
    of them as well, so that nobody repeats them later.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        known: Mapping[TopicPartition, int],
        emit: Callable[[Event], None],
        *,
        finished: Finished | None = None,
        commits: Commits | None = None,
    ) -> None:
        self._cluster = cluster
        self._commits = commits or cluster
        self._group = group
        self._known = dict(known)
        self._emit = emit
        self._finished = finished or {}
        self._contested = False

    def advance(self, finished: Mapping[TopicPartition, int]) -> None:
        """Commit what moved. A refusal is reported and not raised: the next call carries its offsets too."""
        moved = self._moved(finished)
        try:
            if moved and self._contested:
                # The others may have committed meanwhile.
                self._known.update(self._cluster.committed(self._group, moved))
                moved = self._moved(finished)
            self._commits.commit(self._group, moved, self._maps(moved))
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
        points = {tp: self._point(tp, offset) for tp, offset in finished.items()}
        return {tp: point for tp, point in points.items() if point > self._known.get(tp, -1)}

    def _point(self, tp: TopicPartition, offset: int) -> int:
        """The lowest unfinished offset: a batch may end amid what was finished ahead."""
        return next((end for start, end in self._finished.get(tp, ()) if start <= offset < end), offset)

    def _maps(self, points: Offsets) -> dict[TopicPartition, str]:
        ahead = above(self._finished, points)
        return {tp: encode(points[tp], ranges) or "" for tp, ranges in ahead.items() if tp in points}

    def _refused(self, moved: Offsets, error: PenstockError) -> None:
        if self._has_members():
            if not self._contested:
                self._contested = True
                self._warn(
                    f"Group {self._group!r} has members now, which handle the same records again and keep Spark from "
                    "committing. Spark goes on and remembers its progress. Stop them: it commits as soon as they are "
                    "gone."
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
    """Spark is no member of the group it commits for, so others would handle the same records."""
    members = cluster.members(group)
    if members:
        raise ServerError(
            f"Group {group!r} has {members} active {'member' if members == 1 else 'members'}, "
            "which would handle the same records again and keep Spark from committing.",
            hint='Stop them first, or run this handler in a group of its own: @app.consume(..., group="...").',
        )
