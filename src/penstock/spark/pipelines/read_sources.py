"""Reads a pipeline's sources as DataFrames: as a stream, or as a range with an end."""

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Pipeline, Source
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.batch_size import BatchSize
from penstock.spark.internals import collect_smallest
from penstock.spark.pipelines.arrow_columns import SOURCE_COLUMNS
from penstock.spark.pipelines.dead_letter_rows import halting
from penstock.spark.pipelines.decoded_columns import REASON, selected
from penstock.spark.pipelines.expected_columns import DROPPED, FAILS, decoded_and_checked, unmet_column
from penstock.spark.pipelines.kafka_options import reading_options
from penstock.spark.pipelines.resume_offsets import Offsets, to_json
from penstock.spark.pipelines.writer_schemas import Schemas

# The name under which a plan counts the records of a source; the source's name follows.
READ_METRIC = "penstock.read."

# Spark notes the positions of so many unreadable records of a batch, and the driver fetches those records from Kafka.
# If there are more, Spark reads the batch once more. Spark keeps the notes of its last thousands of tasks as text, so
# a position is only three numbers: topic, partition and offset.
MAX_POSITIONS = 256

_FIRST_BATCH = 250_000


def read_stream(
    session: SparkSession,
    pipeline: Pipeline,
    name: str,
    *,
    clients: Mapping[str, str],
    start: Offsets,
    schemas: Mapping[str, Schemas],
) -> DataFrame:
    """Return the stream from ``start`` on, as the pipeline's function gets it."""
    source = pipeline.sources[name]
    options = {
        **reading_options(clients),
        "subscribe": ",".join(source.topics),
        "startingOffsets": to_json(of_source(source, start)),
        "maxOffsetsPerTrigger": str(of_each_source(pipeline, first_size(pipeline).size)),
    }
    raw = session.readStream.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)
    return _readable(raw, pipeline, name, schemas.get(name))


def first_size(pipeline: Pipeline) -> BatchSize:
    """Return the size of the first batch, which is small in case Spark is slow, with the limits of the next ones."""
    return BatchSize(_FIRST_BATCH, most=pipeline.max_micro_batch, seconds=pipeline.micro_batch)


def of_each_source(pipeline: Pipeline, size: int) -> int:
    """Return the limit of each source: Spark limits each source on its own."""
    return max(1, size // len(pipeline.sources))


def read_range(
    session: SparkSession,
    *,
    clients: Mapping[str, str],
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
) -> DataFrame:
    """Return Kafka's columns of the records from each ``start`` up to, and without, each ``end``."""
    options = {
        **reading_options(clients),
        "assign": _partitions(end),
        "startingOffsets": to_json(start),
        "endingOffsets": to_json(end),
    }
    return session.read.format("kafka").options(**options).load().select(*SOURCE_COLUMNS)


def readable_range(
    session: SparkSession,
    pipeline: Pipeline,
    name: str,
    *,
    clients: Mapping[str, str],
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    schemas: Mapping[str, Schemas],
) -> DataFrame:
    """Return a range as the pipeline's function gets it."""
    source = pipeline.sources[name]
    raw = read_range(session, clients=clients, start=of_source(source, start), end=of_source(source, end))
    return _readable(raw, pipeline, name, schemas.get(name))


def of_source(source: Source, offsets: Mapping[TopicPartition, int]) -> Offsets:
    return {tp: offset for tp, offset in offsets.items() if tp[0] in source.topics}


def _readable(raw: DataFrame, pipeline: Pipeline, name: str, schemas: Schemas | None) -> DataFrame:
    """Decode and count the records, and drop unreadable ones; without a dead-letter topic they fail the job."""
    source = pipeline.sources[name]
    # The optimizer pushes no filter through `observe`. A filter below it would make Spark parse the JSON twice.
    topic = F.array_position(F.array(*map(F.lit, source.topics)), F.col("topic")).cast("int").alias("topic")
    position = F.when(F.col(REASON).isNotNull(), F.struct(topic, "partition", "offset"))
    unmet = [_count_of(unmet_column(number)).alias(f"unmet{number}") for number in range(len(source.expect))]
    rows = decoded_and_checked(raw, source, schemas).observe(
        f"{READ_METRIC}{name}",
        F.count(F.lit(1)).alias("read"),
        F.count(F.col(REASON)).alias("unreadable"),
        collect_smallest(position, MAX_POSITIONS).alias("positions"),
        *([_count_of(DROPPED).alias("dropped"), *unmet] if source.expect else ()),
    )
    is_fatal = F.col(REASON).isNotNull() if pipeline.dead_letter is None else F.col(FAILS)
    if pipeline.dead_letter is None or "fail" in source.expect.values():
        rows = halting(rows, pipeline.name, is_fatal)
    rows = rows.filter(F.col(REASON).isNull())
    return selected(rows.filter(~F.col(DROPPED)) if source.expect else rows, source)


def _count_of(condition: str) -> Column:
    return F.count(F.when(F.col(condition), 1))


def _partitions(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(offsets):
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic)
