"""The rule where partitions resume, from what the group, an old checkpoint, the logs and the options say."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.spark.pipelines.resume_offsets import Log, Offsets


@dataclass(frozen=True)
class ResumePositions:
    """``moved`` has the partitions whose log lacks the next offset; ``forced`` those that ``from_`` sets.

    In both, the group's committed offset no longer counts.
    """

    positions: Offsets
    moved: tuple[OutOfRange, ...] = ()
    forced: frozenset[TopicPartition] = frozenset()

    @property
    def reset(self) -> frozenset[TopicPartition]:
        return self.forced | {each.tp for each in self.moved}


def resume(
    logs: Mapping[TopicPartition, Log],
    *,
    committed: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int | None],
    checkpoint: Mapping[TopicPartition, int],
    forced: Mapping[TopicPartition, int | None],
    renewed: Container[str] = (),
) -> ResumePositions:
    """Resume at the group's offset or that of an old checkpoint, whichever is higher: both mean finished records.

    ``starts`` has the offsets for partitions without either (None: the start of the log). ``forced`` overrides all
    others. Topics that are ``renewed`` were deleted and recreated: known offsets belong to the old log.
    """
    found: Offsets = {}
    moved: list[OutOfRange] = []
    for tp, log in logs.items():
        known = max(checkpoint.get(tp, -1), committed.get(tp, -1))
        if tp in forced:
            offset, wanted = forced[tp], starts[tp]
            if offset is not None and offset > log.end:
                wanted = offset  # the user named it; it does not belong to a recreated topic
        elif known >= 0:
            offset, wanted = known, starts[tp]
        else:
            # If the checkpoint has other partitions, this one was added since, and none of its records was handled.
            offset = wanted = None if checkpoint else starts[tp]
        recreated = known >= 0 and tp[0] in renewed and tp not in forced
        if offset is not None and (recreated or not log.start <= offset <= log.end):
            moved.append(OutOfRange.found(tp, offset, low=log.start, high=log.end, wanted=wanted))
            offset = moved[-1].moved_to
        found[tp] = log.start if offset is None else offset
    return ResumePositions(found, tuple(moved), frozenset(forced) & logs.keys())
