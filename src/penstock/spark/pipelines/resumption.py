"""Where a pipeline goes on: by its checkpoint, its group and its logs."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.core.records.record import TopicPartition
from penstock.spark.offsets import EARLIEST, Log, Offsets


@dataclass(frozen=True)
class Resumption:
    """Where each partition goes on, whether the checkpoint stands exactly there, and what is not as it was."""

    offsets: Offsets
    checkpoint_fits: bool
    surprises: tuple[str, ...]

    def left(self, logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, range]:
        """The offsets that each partition has left, where there are some."""
        starts = {tp: log.start if self.offsets[tp] == EARLIEST else self.offsets[tp] for tp, log in logs.items()}
        return {tp: range(starts[tp], log.end) for tp, log in logs.items() if starts[tp] < log.end}


def resume_pipeline(
    logs: Mapping[TopicPartition, Log],
    *,
    finished: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    start: Literal["earliest", "latest"],
    moved: Container[TopicPartition] = (),
) -> Resumption:
    """Go on where the checkpoint or the group stands, whichever is further: both only ever tell of finished records.

    In the partitions that another tool has ``moved``, only the group's offset counts, be it further or not.
    ``finished`` is what the checkpoint says; where it says something, it is about all topics that the output reads.
    Partitions that it does not have are new, which Spark begins at their start by itself.
    """
    known_topics = {topic for topic, _ in finished}
    offsets: Offsets = {}
    surprises = []
    for tp, log in logs.items():
        others = committed.get(tp, -1) if not finished or tp[0] in known_topics else -1
        known = others if tp in moved and others >= 0 else max(finished.get(tp, -1), others)
        if log.start <= known <= log.end:
            offsets[tp] = known
            continue
        if known >= 0:
            surprises.append(_surprise(tp, known, log))
        from_end = start == "latest" and (known > log.end or (known < 0 and not finished))
        offsets[tp] = log.end if from_end else EARLIEST
    fits = bool(finished) and all(offsets.get(tp) == offset for tp, offset in finished.items())
    return Resumption(
        offsets, fits and _only_new_ones_are_at_their_start(offsets, finished, known_topics), tuple(surprises)
    )


def _only_new_ones_are_at_their_start(
    offsets: Offsets, finished: Mapping[TopicPartition, int], topics: set[str]
) -> bool:
    """A partition that the checkpoint does not have, and the group does: its checkpoint is not what it was."""
    added = {tp: offset for tp, offset in offsets.items() if tp not in finished and tp[0] in topics}
    return all(offset == EARLIEST for offset in added.values())


def _surprise(tp: TopicPartition, known: int, log: Log) -> str:
    topic, partition = tp
    if known < log.start:
        return f"Records {known} to {log.start - 1} of {topic}[{partition}] were deleted before they were handled."
    return f"{topic}[{partition}] ends at {log.end}, but the group stood at {known}: it was cut or made anew."
