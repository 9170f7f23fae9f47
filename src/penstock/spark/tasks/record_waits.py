"""What a slice must know of the records that failed in an earlier one, and what it returns for the next one.

``ahead`` is by how many seconds the wall clock is ahead of the clock of timers.
"""

from collections.abc import Mapping

from penstock.core.progress.slices import Wait
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.lanes import Epoch


def take_over(epoch: Epoch, waiting: Mapping[int, Wait], *, ahead: float) -> None:
    for offset, wait in waiting.items():
        if wait.failures:
            epoch.failures[offset] = wait.failures
        if wait.suspected_at is not None:
            epoch.suspected_at[offset] = wait.suspected_at - ahead


def waits_of(epoch: Epoch, due: Mapping[tuple[TopicPartition, int], float], *, ahead: float) -> dict[int, Wait]:
    """``due`` has the time of the next attempt, of all partitions of the task, in seconds since 1970."""
    waiting: dict[int, Wait] = {}
    for (tp, offset), at in due.items():
        if tp == epoch.tp and epoch.tracker.is_unfinished(offset):
            suspected_at = epoch.suspected_at.get(offset)
            waiting[offset] = Wait(
                epoch.failures.get(offset, 0), at, None if suspected_at is None else suspected_at + ahead
            )
    return waiting
