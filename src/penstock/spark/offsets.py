"""Offsets by partition: Spark's JSON for them, and where a handler goes on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.app import Start
from penstock.core.record import TopicPartition

Offsets = dict[TopicPartition, int]

# Spark's sign for "wherever the log starts by then", which no retention can overtake.
EARLIEST = -2


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)


def from_json(text: str) -> Offsets:
    """Raises ValueError where the text is not what Spark writes."""
    by_topic = json.loads(text)
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, partitions in by_topic.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not offsets by topic and partition: {text[:80]}") from error


@dataclass(frozen=True)
class Log:
    """What a partition holds: from its first offset up to the one that comes next."""

    start: int
    end: int


@dataclass(frozen=True)
class Resumption:
    """Where each partition goes on, whether the checkpoint stands exactly there, and what is not as it was."""

    offsets: Offsets
    checkpoint_fits: bool
    surprises: tuple[str, ...]

    def left(self, logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, range]:
        """The offsets that each partition has left to handle, where there are some."""
        starts = {
            place: log.start if self.offsets[place] == EARLIEST else self.offsets[place] for place, log in logs.items()
        }
        return {place: range(starts[place], log.end) for place, log in logs.items() if starts[place] < log.end}


def resume(
    logs: Mapping[TopicPartition, Log],
    *,
    finished: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    start: Start,
) -> Resumption:
    """Go on where the checkpoint or the group stands, whichever is further: both only ever tell of finished records.

    The checkpoint is ahead when a driver died before it could commit to the group; the group is ahead when the local
    engine has run since. In that case, and where the topics or their logs have changed, the checkpoint does not fit.
    """
    offsets, surprises = {}, []
    for place, log in logs.items():
        known = max(finished.get(place, -1), committed.get(place, -1))
        if log.start <= known <= log.end:
            offsets[place] = known
            continue
        if known >= 0:
            surprises.append(_surprise(place, known, log))
        # A partition that appears beside known ones was added, and nothing of it has been handled yet.
        from_end = start == "latest" and (known > log.end or (known < 0 and not finished))
        offsets[place] = log.end if from_end else EARLIEST
    fits = bool(finished) and all(finished.get(place, EARLIEST) == offset for place, offset in offsets.items())
    return Resumption(offsets, fits and finished.keys() <= logs.keys(), tuple(surprises))


def _surprise(place: TopicPartition, known: int, log: Log) -> str:
    topic, partition = place
    if known < log.start:
        return f"Records {known} to {log.start - 1} of {topic}[{partition}] were deleted before they were handled."
    return f"{topic}[{partition}] ends at {log.end}, but the group stood at {known}: it was cut or made anew."
