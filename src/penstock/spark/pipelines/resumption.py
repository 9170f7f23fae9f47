"""Finds the offsets where a pipeline resumes, from its checkpoint, its group's offsets and its logs."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.core.records.record import TopicPartition
from penstock.spark.pipelines.resume_offsets import EARLIEST, Log, Offsets


@dataclass(frozen=True)
class PipelineResumption:
    """The offset where each partition resumes, whether the checkpoint has exactly these, and warnings for the user."""

    offsets: Offsets
    checkpoint_fits: bool
    warnings: tuple[str, ...]

    def left(self, logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, range]:
        """Return the offsets that each partition has left to read, without those that have none."""
        starts = {tp: log.start if self.offsets[tp] == EARLIEST else self.offsets[tp] for tp, log in logs.items()}
        return {tp: range(starts[tp], log.end) for tp, log in logs.items() if starts[tp] < log.end}


def resume_pipeline(
    logs: Mapping[TopicPartition, Log],
    *,
    finished: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    start: Literal["earliest", "latest"],
    moved: Container[TopicPartition] = (),
) -> PipelineResumption:
    """Resume at the checkpoint's offset (``finished``) or the group's, whichever is higher: both mean finished records.

    In partitions that another tool has ``moved``, only the group's offset counts. A checkpoint that is not empty has
    all topics that the output reads; partitions that it lacks are new, and Spark starts them at their earliest record.
    """
    known_topics = {topic for topic, _ in finished}
    offsets: Offsets = {}
    warnings = []
    for tp, log in logs.items():
        group_offset = committed.get(tp, -1) if not finished or tp[0] in known_topics else -1
        known = group_offset if tp in moved and group_offset >= 0 else max(finished.get(tp, -1), group_offset)
        if log.start <= known <= log.end:
            offsets[tp] = known
            continue
        if known >= 0:
            warnings.append(_warning(tp, known, log))
        from_end = start == "latest" and (known > log.end or (known < 0 and not finished))
        offsets[tp] = log.end if from_end else EARLIEST
    fits = bool(finished) and all(offsets.get(tp) == offset for tp, offset in finished.items())
    return PipelineResumption(
        offsets, fits and _new_partitions_start_at_earliest(offsets, finished, known_topics), tuple(warnings)
    )


def _new_partitions_start_at_earliest(
    offsets: Offsets, finished: Mapping[TopicPartition, int], topics: set[str]
) -> bool:
    """False if the group has an offset in a partition that the checkpoint lacks: then the checkpoint does not fit."""
    added = {tp: offset for tp, offset in offsets.items() if tp not in finished and tp[0] in topics}
    return all(offset == EARLIEST for offset in added.values())


def _warning(tp: TopicPartition, known: int, log: Log) -> str:
    topic, partition = tp
    if known < log.start:
        return f"Records {known} to {log.start - 1} of {topic}[{partition}] were deleted before they were handled."
    return f"{topic}[{partition}] ends at {log.end}, but the group is at {known}: the topic was truncated or recreated."
