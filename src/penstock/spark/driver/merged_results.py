"""Combines the results of tasks that divided the keys of one slice among them (``scale="cpu"``)."""

from collections.abc import Sequence

from penstock.core.progress.offset_map import decode, encode
from penstock.core.progress.slices import Reached, common
from penstock.core.records.record import TopicPartition
from penstock.spark.tasks.slice_result import SliceResult


def merged(results: Sequence[SliceResult]) -> list[SliceResult]:
    """Return one result for each partition, without counts and events: those are reported for each task."""
    by_tp: dict[TopicPartition, list[SliceResult]] = {}
    for result in results:
        by_tp.setdefault(result.tp, []).append(result)
    return [parts[0] if len(parts) == 1 else _combined(parts) for parts in by_tp.values()]


def _combined(parts: Sequence[SliceResult]) -> SliceResult:
    first = parts[0]
    failed = next((each for each in parts if each.error is not None), None)
    error, may_pass = (None, False) if failed is None else (failed.error, failed.may_pass)
    reached = [each.reached for each in parts if each.reached is not None]
    if len(reached) < len(parts):
        return SliceResult(first.tp, first.epoch, None, error=error, may_pass=may_pass)
    done = [(each.position, decode(each.position, each.metadata), each.read_to) for each in reached]
    point, ranges, read_to = common(done)
    waiting = {offset: wait for each in reached for offset, wait in each.waiting.items()}
    again_at = max(each.again_at for each in reached)
    return SliceResult(
        first.tp,
        first.epoch,
        Reached(point, encode(point, ranges) or "", read_to, waiting, again_at),
        out_of_range=any(each.out_of_range for each in parts),
        error=error,
        may_pass=may_pass,
    )
