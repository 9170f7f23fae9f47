"""Offsets by partition: Spark's JSON form of them, and the rule where a handler resumes."""

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass

from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition

Offsets = dict[TopicPartition, int]

# Spark's value for "the start of the log when Spark reads it": retention cannot delete records before that.
EARLIEST = -2


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)


def from_json(text: str) -> Offsets:
    """Raises ValueError if the text is not in Spark's form."""
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
    """The offsets of a partition: from its first record up to, and without, its end offset."""

    start: int
    end: int


@dataclass(frozen=True)
class Resumption:
    """The offset where each partition resumes, and whether the checkpoint has exactly these offsets.

    ``offsets`` may be EARLIEST, which Spark resolves when it reads. ``moved`` has the partitions whose log lacks the
    next offset; ``forced`` those that ``from_`` sets. In both, the group's committed offset no longer counts.
    """

    offsets: Offsets
    checkpoint_fits: bool
    moved: tuple[OutOfRange, ...] = ()
    forced: frozenset[TopicPartition] = frozenset()

    @property
    def reset(self) -> frozenset[TopicPartition]:
        return self.forced | {each.tp for each in self.moved}

    def begin(self, logs: Mapping[TopicPartition, Log]) -> Offsets:
        """Return the offset where each partition resumes, with EARLIEST resolved by the current logs."""
        return {tp: logs[tp].start if offset == EARLIEST else offset for tp, offset in self.offsets.items()}


def resume(
    logs: Mapping[TopicPartition, Log],
    *,
    finished: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int | None],
    forced: Mapping[TopicPartition, int | None] | None = None,
    renewed: Container[str] = (),
) -> Resumption:
    """Resume at the checkpoint's offset (``finished``) or the group's, whichever is higher: both mean finished records.

    The checkpoint is ahead when a driver died before it could commit to the group; the group is ahead when the local
    engine has run since. In that case, and where the topics or their logs have changed, the checkpoint does not fit.

    ``starts`` has the offsets for partitions without either (None: the start of the log). ``forced`` overrides all
    others. Topics that are ``renewed`` were deleted and recreated: known offsets belong to the old log.
    """
    offsets: Offsets = {}
    moved: list[OutOfRange] = []
    forced = forced or {}
    for tp, log in logs.items():
        known = max(finished.get(tp, -1), committed.get(tp, -1))
        if tp in forced:
            offset, wanted = forced[tp], starts[tp]
            if offset is not None and offset > log.end:
                wanted = offset  # the user named it; it does not belong to a recreated topic
        elif known >= 0:
            offset, wanted = known, starts[tp]
        else:
            # If the checkpoint has other partitions, this one was added since, and none of its records was handled.
            offset = wanted = None if finished else starts[tp]
        recreated = known >= 0 and tp[0] in renewed and tp not in forced
        if offset is not None and (recreated or not log.start <= offset <= log.end):
            found = OutOfRange.found(tp, offset, low=log.start, high=log.end, wanted=wanted)
            moved.append(found)
            offset = None if found.moved_to == log.start else found.moved_to
        offsets[tp] = EARLIEST if offset is None else offset
    fits = bool(finished) and all(finished.get(tp, EARLIEST) == offset for tp, offset in offsets.items())
    return Resumption(
        offsets,
        checkpoint_fits=fits and finished.keys() <= logs.keys(),
        moved=tuple(moved),
        forced=frozenset(forced) & logs.keys(),
    )
