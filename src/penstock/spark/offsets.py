"""Offsets by partition: Spark's JSON for them, and where a handler goes on."""

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass

from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition

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
    """Where each partition goes on, whether the checkpoint stands exactly there, and what is not as it was.

    ``offsets`` are in Spark's words, so that EARLIEST stays what it is until Spark reads. ``moved`` are those whose log
    does not have what was to come next; ``forced`` those that ``from_`` sent elsewhere. Of both, what the group has
    committed does not count any more.
    """

    offsets: Offsets
    checkpoint_fits: bool
    moved: tuple[OutOfRange, ...] = ()
    forced: frozenset[TopicPartition] = frozenset()

    @property
    def reset(self) -> frozenset[TopicPartition]:
        return self.forced | {each.tp for each in self.moved}

    def begin(self, logs: Mapping[TopicPartition, Log]) -> Offsets:
        """The offset that each partition goes on with, as its log is now."""
        return {tp: logs[tp].start if offset == EARLIEST else offset for tp, offset in self.offsets.items()}

    def set_back(self, logs: Mapping[TopicPartition, Log], committed: Mapping[TopicPartition, int]) -> Offsets:
        """Where the group has to go back to, because a log was made anew and ends before what it has committed."""
        return {tp: self._start(tp, log) for tp, log in logs.items() if committed.get(tp, log.end) > log.end}

    def _start(self, tp: TopicPartition, log: Log) -> int:
        return log.start if self.offsets[tp] == EARLIEST else self.offsets[tp]


def resume(
    logs: Mapping[TopicPartition, Log],
    *,
    finished: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int | None],
    forced: Mapping[TopicPartition, int | None] | None = None,
    renewed: Container[str] = (),
) -> Resumption:
    """Go on where the checkpoint or the group stands, whichever is further: both only ever tell of finished records.

    The checkpoint is ahead when a driver died before it could commit to the group; the group is ahead when the local
    engine has run since. In that case, and where the topics or their logs have changed, the checkpoint does not fit.

    ``starts`` says where what nobody knows begins (None: where the log does), ``forced`` where to go whatever is known.
    Offsets of topics that are ``renewed`` (deleted and made anew) are about another log.
    """
    offsets: Offsets = {}
    moved: list[OutOfRange] = []
    forced = forced or {}
    for tp, log in logs.items():
        known = max(finished.get(tp, -1), committed.get(tp, -1))
        if tp in forced:
            offset, wanted = forced[tp], starts[tp]
            if offset is not None and offset > log.end:
                wanted = offset  # it is the user's own, and not one of a log that was recreated
        elif known >= 0:
            offset, wanted = known, starts[tp]
        else:
            # A partition that appears beside known ones was added, and nothing of it has been handled yet.
            offset = wanted = None if finished else starts[tp]
        anew = known >= 0 and tp[0] in renewed and tp not in forced
        if offset is not None and (anew or not log.start <= offset <= log.end):
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
