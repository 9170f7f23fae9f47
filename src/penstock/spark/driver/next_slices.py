"""Which slices of a handler start now, as Spark jobs: one job for each bundle, with one task or several."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from penstock.app import Handler
from penstock.core.progress.slices import PartitionSlices, Slice, plan

# So many jobs for each task that Spark runs at once: while one runs, the next one is being scheduled.
_JOBS_PER_SLOT = 2
# With events of single records, which a task returns all at once: a listener's queue takes twice as many events.
_MOST_WITH_EVENTS = 5_000


@dataclass(frozen=True)
class SliceBundle:
    """The slices of one job, and how they are divided over its tasks."""

    slices: Sequence[Slice]
    tasks: list[Sequence[Slice]]


def tasks_commit(handler: Handler) -> bool:
    """Whether tasks commit the group's offsets; otherwise the driver does."""
    return handler.delivery != "at-least-once"


def next_slices(
    handler: Handler,
    partitions: Collection[PartitionSlices],
    now: float,
    *,
    running: int,
    slots: int,
    per_record: bool = False,
) -> list[SliceBundle]:
    """Plan the jobs to start now, while ``running`` jobs run and Spark runs ``slots`` tasks at once."""
    most = handler.max_micro_batch
    if handler.is_at_most_once:
        most = min(most, handler.max_in_flight)
    if per_record:
        most = min(most, _MOST_WITH_EVENTS)
    bundles = plan(
        partitions,
        now,
        free=slots * _JOBS_PER_SLOT - running,
        slots=slots,
        most=most,
        seconds=handler.micro_batch,
        may_share=not tasks_commit(handler) and handler.scale == "partition",
    )
    return [SliceBundle(bundle, _tasks(handler, bundle, slots)) for bundle in bundles]


def _tasks(handler: Handler, bundle: Sequence[Slice], slots: int) -> list[Sequence[Slice]]:
    if handler.scale != "cpu":
        return [bundle]
    (only,) = bundle
    return [[each] for each in only.split(max(1, min(slots, only.end - only.start)))]
