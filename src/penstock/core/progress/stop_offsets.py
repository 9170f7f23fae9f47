"""Where a replay of a range stops: no record at or above the stop of its partition is delivered."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from penstock.core.records.record import TopicPartition


def stop_at(
    stops: Mapping[TopicPartition, int],
    records: dict[TopicPartition, list[Any]],
    ends: dict[TopicPartition, int],
    *,
    offset_of: Callable[[Any], int],
) -> set[TopicPartition]:
    """Drop the records at or above the stops, and return the partitions that were read up to their stop.

    ``records`` has the fetched records of each partition, in the order of their offsets. ``ends`` has the partitions
    that were read up to an offset; those that reached their stop are added. A record above the stop proves that none
    below it is missing, also where the log has gaps.
    """
    reached = set()
    for tp in [*records]:
        batch, stop = records[tp], stops[tp]
        if offset_of(batch[-1]) >= stop - 1:
            reached.add(tp)
            del batch[bisect_left(batch, stop, key=offset_of) :]
        if not batch:
            del records[tp]
    for tp, end in ends.items():
        if end >= stops[tp]:
            reached.add(tp)
    ends.update({tp: stops[tp] for tp in reached})
    return reached
