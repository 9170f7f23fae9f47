"""Where a pipeline goes on: by its checkpoint, its group and its logs."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.core.records.record import TopicPartition
from penstock.spark.offsets import EARLIEST, Log, Offsets


@dataclass(frozen=True)
class Place:
    """Where each partition goes on, whether the checkpoint stands exactly there, and what is not as it was."""

    offsets: Offsets
    checkpoint_fits: bool
    surprises: tuple[str, ...]

    def left(self, logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, range]:
        """The offsets that each partition has left, where there are some."""
        starts = {
            place: log.start if self.offsets[place] == EARLIEST else self.offsets[place] for place, log in logs.items()
        }
        return {place: range(starts[place], log.end) for place, log in logs.items() if starts[place] < log.end}


def go_on(
    logs: Mapping[TopicPartition, Log],
    *,
    finished: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    start: Literal["earliest", "latest"],
    moved: Container[TopicPartition] = (),
) -> Place:
    """Go on where the checkpoint or the group stands, whichever is further: both only ever tell of finished records.

    In the partitions that another tool has ``moved``, only the group's offset counts, be it further or not.
    ``finished`` is what the checkpoint says; where it says something, it is about all topics that the output reads.
    Partitions that it does not have are new, which Spark begins at their start by itself.
    """
    known_topics = {topic for topic, _ in finished}
    offsets: Offsets = {}
    surprises = []
    for place, log in logs.items():
        others = committed.get(place, -1) if not finished or place[0] in known_topics else -1
        known = others if place in moved and others >= 0 else max(finished.get(place, -1), others)
        if log.start <= known <= log.end:
            offsets[place] = known
            continue
        if known >= 0:
            surprises.append(_surprise(place, known, log))
        from_end = start == "latest" and (known > log.end or (known < 0 and not finished))
        offsets[place] = log.end if from_end else EARLIEST
    fits = bool(finished) and all(offsets.get(place) == offset for place, offset in finished.items())
    return Place(offsets, fits and _only_new_ones_are_at_their_start(offsets, finished, known_topics), tuple(surprises))


def _only_new_ones_are_at_their_start(
    offsets: Offsets, finished: Mapping[TopicPartition, int], topics: set[str]
) -> bool:
    """A partition that the checkpoint does not have, and the group does: its checkpoint is not what it was."""
    added = {place: offset for place, offset in offsets.items() if place not in finished and place[0] in topics}
    return all(offset == EARLIEST for offset in added.values())


def _surprise(place: TopicPartition, known: int, log: Log) -> str:
    topic, partition = place
    if known < log.start:
        return f"Records {known} to {log.start - 1} of {topic}[{partition}] were deleted before they were handled."
    return f"{topic}[{partition}] ends at {log.end}, but the group stood at {known}: it was cut or made anew."
