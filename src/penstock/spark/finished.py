"""Records above the group's offsets that the local engine has finished (its offset maps). Spark leaves them out."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.core.progress.offset_map import Range, UnreadableMapError, decode
from penstock.core.records.record import TopicPartition

Finished = Mapping[TopicPartition, Sequence[Range]]
"""Ranges of finished offsets by partition, ascending, without overlap."""


def read_maps(
    commits: Mapping[TopicPartition, tuple[int, str]], warn: Callable[[str], None]
) -> dict[TopicPartition, list[Range]]:
    """Read the offset maps in the metadata of the group's commits. Calls ``warn`` for a map that cannot be read."""
    found = {}
    for (topic, partition), (offset, metadata) in commits.items():
        try:
            ranges = decode(offset, metadata)
        except UnreadableMapError as error:
            warn(
                f"The metadata of the commit {topic}[{partition}]@{offset} is ignored: {error}. "
                "Records that it says are finished may be repeated."
            )
            continue
        if ranges:
            found[topic, partition] = ranges
    return found


def above(finished: Finished, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[Range]]:
    """Return the parts at these offsets or above."""
    cut = {
        tp: [(max(start, offsets.get(tp, 0)), end) for start, end in ranges if end > offsets.get(tp, 0)]
        for tp, ranges in finished.items()
    }
    return {tp: ranges for tp, ranges in cut.items() if ranges}


def count(finished: Finished) -> int:
    return sum(end - start for ranges in finished.values() for start, end in ranges)


def without(source: DataFrame, finished: Finished) -> DataFrame:
    """Return the records that are not finished, in the same order and partitions."""
    if not finished:
        return source
    rows = [(*tp, *each) for tp, ranges in finished.items() for each in ranges]
    topics, partitions, starts, ends = zip(*rows, strict=True)
    table = pa.table(
        {
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "begin": pa.array(starts, pa.int64()),
            "end": pa.array(ends, pa.int64()),
        }
    )
    # Broadcast to every task, so that Spark does not shuffle the records.
    ahead = f.broadcast(source.sparkSession.createDataFrame(table))
    is_ahead = (
        (source["topic"] == ahead["topic"])
        & (source["partition"] == ahead["partition"])
        & (source["offset"] >= ahead["begin"])
        & (source["offset"] < ahead["end"])
    )
    return source.join(ahead, is_ahead, "left_anti")
